package webtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"chorus/internal/operations"
)

// A conversation is found by its title, by the search and by Ctrl+K, also when the list beside the page does not show it.
func TestTitlesAreFound(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	id := h.session(operations.NewSession{Title: "The parser of dates"})
	h.prompt(h.session(operations.NewSession{Title: "About something else", Model: "demo/echo"}), "we need a parser")
	for i := range 40 {
		h.session(operations.NewSession{Title: fmt.Sprintf("Another one, number %d", i)})
	}
	p := h.signedIn()
	p.visit("/costs")
	if p.text(`document.querySelector('.sessions a[href="/s/`+id+`"]')`) != "null" {
		t.Fatal("the list beside the page shows it: this test shows nothing")
	}
	p.eval(`document.activeElement.blur()`)
	p.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(2)))
	p.until(`document.getElementById("go")?.open && document.activeElement.type === "search"`)
	p.do(chromedp.KeyEvent("parser of"))
	p.until(`document.querySelector("#go [aria-selected=true]")?.textContent.includes("The parser of dates")`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`location.pathname === "/s/` + id + `"`)

	p.visit("/search?q=parser")
	p.until(`document.querySelector('main a[href="/s/` + id + `"]')`)
	p.until(`document.querySelectorAll("main td.main mark").length > 1`) // and what was said
	p.visit("/search?q=nothing+of+this")
	p.waitForText("No matches.")

	// On a phone the time stands on one line.
	p.phone()
	p.visit("/search?q=parser")
	p.until(`innerWidth === 390 && document.querySelector("table.talks td.right:last-child")`)
	p.eval(`document.querySelectorAll("table.talks td.right:last-child").forEach((e) => (e.textContent = "59 minutes ago"))`)
	if lines := p.number(`(() => { const r = document.createRange(); r.selectNodeContents(document.querySelector("table.talks td.right:last-child")); return new Set([...r.getClientRects()].map((e) => e.top)).size })()`); lines != 1 {
		t.Errorf("the time takes %v lines", lines)
	}
	p.fits("the search")
}

// What a search found is shown where its address leads, below the bar: a message, and what a tool said, which has no row of its own.
func TestSearchLeadsToWhatWasFound(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	id := h.session(operations.NewSession{Permissions: "open"})
	long := strings.Repeat("a line\\n\\n", 60)
	h.prompt(id, "say "+long)
	h.prompt(id, "say the message of Zanzibar")
	h.prompt(id, "say "+long)
	h.prompt(id, `call bash {"command":"printf 'Mada%s' gascar"}`+"\nend\nsay "+long)
	p := h.signedIn()
	p.desktop()
	for _, word := range []string{"Zanzibar", "Madagascar"} {
		p.visit("/search?q=" + word)
		p.until(`document.querySelector("main td.main a")`)
		p.visit(p.text(`document.querySelector("main td.main a").getAttribute("href")`))
		p.until(`(() => { const seq = Number(location.hash.slice(2));
			const row = document.getElementById("e" + seq) ?? [...document.querySelectorAll(".log [id^=e]")].filter((e) => Number(e.id.slice(1)) < seq).at(-1);
			const top = row.getBoundingClientRect().top; return top > 52 && top < 200 })()`)
	}
}
