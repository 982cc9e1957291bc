package webtest

import (
	"strings"
	"testing"

	"chorus/internal/operations"
)

// showsCards fails where a page on a phone has a table whose columns need their headings, or a text that ends at the edge of what holds it.
func (t *tab) showsCards(page string) {
	t.Helper()
	const tables = `[...document.querySelectorAll("main table:not(.counts, .difftable table, .text table) thead")].filter((e) => e.checkVisibility()).map((e) => e.innerText.replace(/\s+/g, " "))`
	if found := value[[]string](t, tables); len(found) > 0 {
		t.Errorf("%s has tables instead of cards on a phone: %q", page, found)
	}
	const clipped = `[...document.querySelectorAll("main *")].filter((e) => { const s = getComputedStyle(e);
		return ["hidden", "clip"].includes(s.overflowX) && e.scrollWidth > e.clientWidth + 1 && e.innerText?.trim() && !e.closest("summary, svg, select, .visually-hidden, .card h3") }).map((e) => e.outerHTML.slice(0, 160))`
	if found := value[[]string](t, clipped); len(found) > 0 {
		t.Errorf("%s cuts something off on a phone: %q", page, found)
	}
}

// Pages whose texts other people and programs wrote fit a phone whatever those wrote, and on a desktop nothing that can be pressed
// lies outside of the window.
func TestPagesFit(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	ops := h.app.Service.Operations()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("no_spaces_", 15)
	h.file("skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Ships "+long+"\n---\n"+long+"\n")
	must(operations.EditMemory.Call(t.Context(), ops, h.owner, operations.MemoryEdit{Path: "global", Text: "- " + long}))
	must(operations.CreateProject.Call(t.Context(), ops, h.owner, operations.NewProject{Name: "Site"}))
	must(operations.AddMCPServer.Call(t.Context(), ops, h.owner, operations.NewMCPServer{Name: "broken", Command: "no-such-" + long}))
	must(operations.TestMCPServer.Call(t.Context(), ops, h.owner, operations.MCPServerRef{Name: "broken"}))
	p := h.signedIn()
	p.visit("/skills")
	skill := p.text(`document.querySelector("table.list a").getAttribute("href")`)
	for _, path := range []string{skill, "/skills", "/memory", "/memory?path=MEMORY.md", "/servers", "/new", "/projects", "/workers", "/work", "/schedules", "/hooks", "/hooks/new", "/processes", "/approvals"} {
		p.desktop()
		p.visit(path)
		p.until(`innerWidth === 1280`)
		if out := p.text(`[...document.querySelectorAll("main button, main a")].filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.textContent).join()`); out != "" {
			t.Errorf("%s: outside of the window: %s", path, out)
		}
		if tall := p.text(`[...document.querySelectorAll("main .button")].filter((e) => e.offsetHeight > 60).map((e) => e.textContent).join()`); tall != "" {
			t.Errorf("%s: broken into letters: %s", path, tall)
		}
		p.phone()
		p.until(`innerWidth < 1280`)
		p.fits(path)
	}
	// A number says what it counts where there is no heading.
	p.visit("/projects")
	p.waitForText("0 open")
	p.waitForText("2 at once")
}
