package webtest

import (
	"fmt"
	"testing"
	"time"
)

// A newcomer without a key presses one suggestion and says yes twice: a bug is found, mended and tested, with the edit and the
// commands to be seen. The other suggestions answer too.
func TestFirstMinutes(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	begun := time.Now()
	clicks := 1
	p.click(`.suggestions button[value="Fix the failing test"]`)
	for yes := 1; yes <= 2; yes++ {
		p.until(`document.querySelector(".ask form.verdict")`)
		p.click(".ask button.yes")
		clicks++
		p.until(fmt.Sprintf(`document.querySelectorAll(".ask .answer").length === %d`, yes)) // the next one may be there already
	}
	p.waitForText("All tests pass now")
	p.waitUntilIdle()
	if took := time.Since(begun); took > time.Minute || clicks > 3 {
		t.Errorf("the first good answer took %s and %d clicks", took, clicks)
	}
	if value[bool](p, `[...document.querySelectorAll(".ask .expires")].some(e => e.offsetParent)`) {
		t.Error("an approval that was given still says when it expires")
	}
	p.eval(`document.querySelector("details.call:has(.difffile)").open = true`)
	if !value[bool](p, `document.querySelector(".call .difftable").offsetParent !== null && document.querySelector(".call .out:has(.difffile) > details.args:not([open]) pre") !== null`) {
		t.Error("an edit shows what the agent was told beside its diff")
	}

	for say, want := range map[string]string{"Explain this project": "Friends eat together", "Search for TODO": "a tip, such as", "Try something dangerous": "refused before anything ran"} {
		fresh := newServer(t)
		p := fresh.signedIn()
		p.click(`.suggestions button[value="` + say + `"]`)
		p.waitForText(want)
	}
}

// Enter sends the first message.
func TestEnterSendsTheFirstMessage(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	p.eval(`{ const f = document.querySelector("textarea[data-enter]"); f.value = "hello";
		f.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", shiftKey: true, bubbles: true, cancelable: true }));
		f.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true })); }`)
	p.waitForText("I am the offline guide")
}

// The start page leads to the guides, whose links and search work below the server's own pages.
func TestGuidesOnTheServer(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	p.until(`!document.querySelector("[aria-busy]")`) // what is loaded later moves the link below it
	p.click(`a[href="/help/index.html"]`)
	p.until(`location.pathname === "/help/index.html" && document.querySelector("main dl")`)
	p.click(`main a[href="tutorials/repository.html"]`)
	p.waitForText("A project to try it on")
	p.click(`main a[href="../guides/sandbox.html"]`)
	p.until(`location.pathname === "/help/guides/sandbox.html" && document.querySelector("main h1").textContent === "Where commands run"`)
	p.eval(`{ const f = document.querySelector("form[role=search]"); f.q.value = "backup"; f.requestSubmit(); }`)
	p.until(`location.pathname === "/help/search.html" && document.querySelector("#results a").textContent === "Backup and restore"`)
}
