package webtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/operations"
)

// From the end of an answer a link leads to the timeline of its run: a picture, and a table that says the same to whoever does not see it.
func TestRunHasATimeline(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{WorkspacePath: t.TempDir(), Permissions: "standard"})
	p.say(`call bash {"command":"echo first"}` + "\nend\nsay done")
	p.until(`document.querySelector("form.verdict")`)
	p.click(".verdict .yes")
	p.waitUntilIdle()
	p.click(`.end a[href$="#why"]`)
	p.until(`document.querySelector("svg.spans")`)
	if why := p.text(`document.querySelector("#why + pre").innerText`); !strings.Contains(why, "asked") || !strings.Contains(why, "echo first") {
		t.Errorf("why is answered with %q", why)
	}
	kinds := p.text(`[...document.querySelectorAll("table.list tbody tr")].map((e) => e.cells[1].innerText).filter((k) => k !== "Waiting to start").join()`)
	if kinds != "Model,Waiting for people,Tools,Model" {
		t.Errorf("the table says %q", kinds)
	}
	if n := p.number(`document.querySelectorAll(".big-screen .spans g rect").length`); n < 4 {
		t.Errorf("%v bars", n)
	}
	if colours := p.number(`new Set(["model", "tool", "person"].map((k) => getComputedStyle(document.querySelector(".big-screen .spans g." + k + " rect")).fill)).size`); colours != 3 {
		t.Errorf("model, tools and waits have %v colours", colours)
	}
	if name := p.text(`document.querySelector("svg.spans").getAttribute("role") + document.querySelector("table.list caption").innerText`); !strings.HasPrefix(name, "img") || !strings.Contains(name, "in order") {
		t.Errorf("for a screen reader: %q", name)
	}
	p.look("timeline")
	p.phone()
	p.until(`innerWidth < 1280`)
	p.fits("the timeline")
	p.look("timeline-phone")
	p.visit(fmt.Sprintf("/s/%s/runs/999999", id)) // the newest run before that number
	p.until(`document.querySelector("svg.spans")`)
}

// Changes are shown one way or the other, and the choice is remembered, also in other conversations. A phone has no room for two sides.
func TestDiffsSideBySide(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "greet.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := h.session(operations.NewSession{WorkspacePath: work, Permissions: "open"})
	h.prompt(first, `call edit {"path":"greet.txt","old_string":"two","new_string":"2"}`+"\nend\nsay done")
	second := h.session(operations.NewSession{WorkspacePath: work, Permissions: "open"})
	h.prompt(second, `call edit {"path":"greet.txt","old_string":"three","new_string":"3"}`+"\nend\nsay done")
	p := h.signedIn()
	p.desktop()
	p.visit("/s/" + first)
	p.until(`document.querySelector(".difftable") && !document.querySelector("table.split")`)
	p.click(`.diffswitch a:last-child`)
	p.until(`document.querySelector("table.split")?.offsetWidth > 640`)
	p.look("diff-split")
	p.visit("/s/" + second)
	p.until(`document.querySelector("table.split")?.innerText.includes("three")`)
	p.phone()
	p.until(`innerWidth < 1280 && document.querySelector("table.split").offsetWidth === 0 && document.querySelector(".difftable.small-screen").offsetWidth > 0`)
	p.fits("changes")
	p.desktop()
	p.until(`innerWidth === 1280`)
	p.click(`.diffswitch a:first-child`)
	p.until(`document.querySelector(".difftable") && !document.querySelector("table.split")`)
	p.visit("/s/" + first)
	p.until(`document.querySelector(".difftable") && !document.querySelector("table.split")`)
}
