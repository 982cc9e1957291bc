package webtest

import (
	"os/exec"
	"strings"
	"testing"

	"chorus/internal/operations"
)

// A project and a task are created on the board; the task's page shows what it changed as text, and it is approved and reopened there.
func TestWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "begin"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	h := newServer(t, "model: demo/script", "permissions: open")
	p := h.signedIn()
	p.visit("/work")
	p.waitForText("Create one first")
	p.write("input[name=name]", "My Site")
	p.write("input[name=repo]", dir)
	p.click("form[action='/work/projects'] button")
	p.until(`location.search === "?project=my-site" && document.querySelector("form[action='/work'] textarea")`)
	pause := func() { // so that what is created or reopened stays READY
		t.Helper()
		if _, err := operations.PauseProject.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.ProjectRef{ID: "my-site"}); err != nil {
			t.Fatal(err)
		}
	}
	pause()
	p.click(".make summary")
	p.write("input[name=title]", "Add <b>bold</b> words")
	p.write("textarea[name=description]", `!call write {"path":"b.html","content":"<script>x</script>\n"}`)
	p.click("input[name=approval]")
	p.click("form.form[action='/work'] button")
	p.until(`location.pathname.startsWith("/work/") && document.querySelector("h1")?.textContent === "Add <b>bold</b> words"`)
	task := p.text(`location.pathname`)
	p.waitForText("READY")
	p.until(`!document.querySelector("button[name=do]:not([value=edit])")`)
	p.visit("/work")
	p.until(`document.querySelector("[data-column=ready] .card a")?.textContent === "Add <b>bold</b> words"`)

	if _, err := operations.ResumeProject.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.ProjectRef{ID: "my-site"}); err != nil {
		t.Fatal(err)
	}
	p.until(`document.querySelector("[data-column=asking] .card .tag")?.textContent === "awaiting approval"`) // by itself: the board is renewed
	for _, path := range []string{"/work", task} {
		p.visit(path)
		for _, theme := range []string{"light", "dark"} {
			p.eval(`document.documentElement.dataset.theme = "` + theme + `"`)
			p.phone()
			p.until(`innerWidth === 390`)
			p.fits(path + " on a phone")
		}
		p.desktop()
	}
	p.until(`[...document.querySelectorAll(".difftable .code.add")].some((line) => line.textContent === "<script>x</script>")`)
	p.click("a[href*='diff=split']")
	p.until(`document.querySelector(".split .code.add")?.textContent === "<script>x</script>"`)
	p.until(`document.querySelector(".tasklog .call")`) // what the attempt did
	if patch := value[string](p, `fetch(location.pathname + "/diff").then((r) => r.text())`); !strings.Contains(patch, "+<script>x</script>\n") {
		t.Errorf("the patch is %q", patch)
	}
	p.until(`document.querySelector("a[href^='/s/'].button")`)
	p.click("button[value=approve]")
	p.until(`document.querySelector(".sheet .tag")?.textContent === "completed" && !document.querySelector("button[value=approve]")`)
	pause()
	p.write("textarea[name=feedback]", "It must be <em>bolder</em>")
	p.click("button[value=reopen]")
	p.waitForText("It must be")
	p.until(`document.querySelector(".sheet .tag")?.textContent === "ready"`)
	p.click("a[href^='/s/'].button")
	p.until(`location.pathname.startsWith("/s/") && document.querySelector(".said")`)
}
