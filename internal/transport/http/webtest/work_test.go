package webtest

import (
	"os/exec"
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
	p.waitForText("create one first")
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
	p.until(`!document.querySelector("button[name=do]")`)
	p.visit("/work")
	p.until(`document.querySelector(".board section:first-child .card a")?.textContent === "Add <b>bold</b> words"`)

	if _, err := operations.ResumeProject.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.ProjectRef{ID: "my-site"}); err != nil {
		t.Fatal(err)
	}
	p.until(`document.querySelector(".board section:nth-child(3) .card .tag")?.textContent === "AWAITING_APPROVAL"`) // by itself: the board is renewed
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
	p.until(`[...document.querySelectorAll("pre.diff .add")].some((line) => line.textContent === "+<script>x</script>")`)
	p.until(`document.querySelector("a[href^='/s/'].button")`)
	p.click("button[value=approve]")
	p.until(`document.querySelector(".sheet .tag")?.textContent === "COMPLETED" && !document.querySelector("button[value=approve]")`)
	pause()
	p.write("textarea[name=feedback]", "It must be <em>bolder</em>")
	p.click("button[value=reopen]")
	p.waitForText("It must be")
	p.until(`document.querySelector(".sheet .tag")?.textContent === "READY"`)
	p.click("a[href^='/s/'].button")
	p.until(`location.pathname.startsWith("/s/") && document.querySelector(".said")`)
}
