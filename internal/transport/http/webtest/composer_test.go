package webtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"chorus/internal/operations"
)

// What an edit changed is shown without a click, live and after a reload.
func TestEditsAreShown(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "greet.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := h.begin(operations.NewSession{WorkspacePath: work, Permissions: "open"})
	p.say("call read {\"path\":\"greet.txt\"}\nend\ncall edit {\"path\":\"greet.txt\",\"old_string\":\"two\",\"new_string\":\"<b>2</b>\"}\nend\ncall bash {\"command\":\"echo no; exit 3\",\"description\":\"Run the tests\"}\nend\nsay done")
	p.waitForAnswer("done")
	shown := `[...document.querySelectorAll("details.call[open] .difftable td.code.add")].some((e) => e.innerText.includes("<b>2</b>"))`
	p.until(shown)
	p.until(`[...document.querySelectorAll("details.call .state")].some((e) => e.textContent.includes("exit code 3"))`)
	p.do(reload())
	p.until(shown)
	p.once("echo no; exit 3", "details.call pre.command") // the command, though it has a description
}

// A conversation is renamed, pinned and archived from its page, and comes back when somebody says something in it.
func TestRenamePinArchive(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	h.prompt(id, "say hello")
	p.waitForAnswer("hello")
	p.click(".talk .menu summary")
	p.eval(`document.querySelector(".rename input").value = "Release <2.1>"`)
	p.click(".rename button")
	p.until(`document.getElementById("title")?.textContent === "Release <2.1>" && document.querySelector(".sessions .name").textContent === "Release <2.1>"`)
	p.click(".talk .menu summary")
	p.click(`.acts button[value=pinned]`)
	p.until(`document.querySelector(".side .day")?.textContent === "Pinned"`)
	p.once("Release", ".sessions .name")
	p.click(".talk .menu summary")
	p.click(`.acts button[value=archived]`)
	p.until(`document.querySelectorAll(".sessions a").length === 0`)
	p.visit("/search?listing=archived")
	p.waitForText("Release <2.1>")
	p.visit("/s/" + id)
	p.waitForText("Archived")
	p.say("say again")
	p.waitForAnswer("again")
	p.do(reload())
	p.until(`document.querySelector(".side .day")?.textContent === "Today"`)
}

// Model, permissions and mode are chosen below the message and count at once.
func TestChips(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	p.eval(`const s = document.querySelector("select[name=permissions]"); s.value = "locked"; s.dispatchEvent(new Event("change"))`)
	p.waitForText("Permissions from the next message on: locked")
	p.eval(`const m = document.querySelector("select[name=work]"); m.value = "plan"; m.dispatchEvent(new Event("change"))`)
	p.waitForText("This counts from the next message on")
	s, err := operations.GetSession.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.SessionRef{ID: id})
	if err != nil || s.Permissions != "locked" || s.Mode != "plan" {
		t.Errorf("%v: the session has the permissions %q and the mode %q", err, s.Permissions, s.Mode)
	}
	p.do(reload())
	p.until(`document.querySelector("select[name=permissions]").selectedOptions[0].textContent === "locked"`)
	p.say("say hello")
	p.waitForAnswer("hello")
	if s, err = operations.GetSession.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.SessionRef{ID: id}); err != nil || s.Permissions != "locked" {
		t.Errorf("%v: a message changed the permissions to %q", err, s.Permissions)
	}
}

// Files are dropped, taken away again, and sent; names of files are completed.
func TestDropFilesAndNameThem(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	work := t.TempDir()
	for _, name := range []string{"greet.go", "secret.log", ".gitignore"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte("*.log\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, _ := h.begin(operations.NewSession{WorkspacePath: work})
	p.eval(`const data = new DataTransfer(); for (const name of ["one.txt", "two.txt"]) data.items.add(new File(["text of " + name], name, { type: "text/plain" }));
		document.querySelector(".talk").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }))`)
	p.until(`document.querySelectorAll("#chosen li").length === 2`)
	p.click("#chosen li:first-child .remove")
	p.until(`document.querySelectorAll("#chosen li").length === 1 && document.querySelector("#chosen").textContent.includes("two.txt")`)
	p.eval(`const area = document.querySelector("#say textarea"); area.focus(); area.setRangeText("\u0060\u0060\u0060demo\nsay I read it\n\u0060\u0060\u0060\n", 0, 0, "end")`)
	p.do(chromedp.KeyEvent("see @gree"))
	p.until(`document.querySelector("#completions [role=option]")?.textContent.includes("greet.go")`)
	if got := p.text(`document.getElementById("completions").textContent`); strings.Contains(got, "secret.log") {
		t.Errorf("an ignored file is offered: %s", got)
	}
	p.do(chromedp.KeyEvent(kb.Tab))
	p.until(`document.querySelector("#say textarea").value.endsWith("see @greet.go ")`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.waitForAnswer("I read it")
	p.once("two.txt", ".said.user .call .label")
	if got := p.text(`document.getElementById("title").textContent`); strings.Contains(got, "attachment") {
		t.Errorf("the title is %q", got)
	}
	if n := p.number(`document.querySelectorAll("#chosen li").length`); n != 0 {
		t.Errorf("%v files are still chosen", n)
	}
}

// A message is edited in a new conversation, answered again, and a failed run is tried again where it is.
func TestEditAnswerAgainAndRetry(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	h.prompt(id, "say first answer")
	p.waitForAnswer("first answer")
	h.prompt(id, "say second answer")
	p.waitForAnswer("second answer")
	p.eval(`[...document.querySelectorAll(".said.user button[value=edit]")].at(-1).click()`)
	p.until(`location.search.startsWith("?edit=") && document.querySelector("#say textarea")?.value === "say second answer"`)
	p.waitForAnswer("first answer")
	if p.text(`[...document.querySelectorAll(".said")].some((e) => e.textContent.includes("second answer"))`) != "false" {
		t.Error("the message that is edited is still in the new conversation")
	}
	p.eval(`document.querySelector("#say textarea").value = "say third answer"`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.waitForAnswer("third answer")
	p.waitUntilIdle()
	before := p.text("location.pathname")
	p.eval(`[...document.querySelectorAll(".said.agent button[value=anew]")].at(-1).click()`)
	p.until(`location.pathname !== "` + before + `"`)
	p.waitForAnswer("third answer")
	p.waitForAnswer("first answer")
	p.visit("/s/" + id)
	h.prompt(id, "fail refused")
	p.until(`document.querySelector(".end.bad button[value=retry]")`)
	p.click(".end.bad button[value=retry]")
	p.until(`document.querySelectorAll(".end.bad").length === 2`)
	p.until(`[...document.querySelectorAll(".said.user")].filter((e) => e.textContent.includes("fail refused")).length === 2`)
}

// Ctrl+K goes to a page or a conversation, ? shows the keys.
func TestPaletteAndShortcuts(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	id := h.session(operations.NewSession{Title: "The parser"})
	p := h.signedIn()
	p.visit("/costs")
	p.eval(`document.activeElement.blur()`)
	p.do(chromedp.KeyEvent("?"))
	p.until(`document.getElementById("shortcuts")?.open`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`!document.getElementById("shortcuts").open`)
	p.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(2)))
	p.until(`document.getElementById("go")?.open && document.activeElement.type === "search"`)
	p.do(chromedp.KeyEvent("pars"))
	p.until(`document.querySelector("#go [aria-selected=true]")?.textContent.includes("The parser")`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`location.pathname === "/s/` + id + `"`)
}

// "Always" on the page shows what else it would allow, and keeps the rule.
func TestAlwaysOnThePage(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, _ := h.begin(operations.NewSession{Permissions: "standard"})
	p.say("call bash {\"command\":\"touch made.txt\"}\nend\nsay it is done")
	p.until(`document.querySelector("form.verdict .always")`)
	p.click("form.verdict .always")
	p.waitForText("Always allow")
	p.until(`document.querySelectorAll("form.step").length > 0`)
	if samples := p.text(`[...document.querySelectorAll("form.step:last-of-type .samples")].map((e) => e.className + ": " + e.innerText.replace(/\n/g, ", ")).join("; ")`); !strings.Contains(samples, "samples yes: touch other") || !strings.Contains(samples, "samples: cd .. && touch made.txt") {
		t.Errorf("what it would allow too, and what would still be asked: %s", samples)
	}
	if shown := p.text(`[...document.querySelectorAll("form.step pre")].some((e) => e.checkVisibility())`); shown != "false" {
		t.Error("an expression is shown without a click")
	}
	p.click("form.step:last-of-type button.button")
	p.waitForAnswer("it is done")
	p.say("call bash {\"command\":\"touch made.txt\"}\nend\nsay a second time")
	p.waitForAnswer("a second time")
	if n := p.number(`document.querySelectorAll(".ask").length`); n != 1 {
		t.Errorf("it was asked %v times", n)
	}
}
