package webtest

import (
	"strings"
	"testing"

	"chorus/internal/operations"
)

// A card says how much harm a command could do and why, and what the rules say of each of its parts; the list of approvals says the same.
func TestApprovalShowsRiskAndParts(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{WorkspacePath: t.TempDir(), Permissions: "standard"})
	p.say(`call bash {"command":"cd src && rm -rf build"}` + "\nend\nsay done")
	p.until(`document.querySelector(".ask .risk.high")`)
	for _, path := range []string{"/s/" + id, "/approvals"} {
		p.visit(path)
		if risk := p.text(`document.querySelector(".ask .risk").innerText`); !strings.Contains(risk, "high risk") || !strings.Contains(risk, "It deletes whole folders, which cannot be undone.") {
			t.Errorf("%s: risk %q", path, risk)
		}
		if parts := p.text(`[...document.querySelectorAll(".ask .parts li")].map((e) => e.className + "=" + e.querySelector(".tag").innerText + " " + e.querySelector("code").innerText).join("; ")`); parts != "is-allow deep0=allowed cd src; is-ask deep0=asked rm -rf build" {
			t.Errorf("%s: parts %q", path, parts)
		}
		p.look("risk" + strings.ReplaceAll(path, "/", "-"))
	}
	if colours := p.number(`new Set([...document.querySelectorAll(".ask .parts .tag")].map((e) => getComputedStyle(e).color)).size`); colours != 2 {
		t.Errorf("what is allowed and what is asked have %v colours", colours)
	}
	// Others could do less harm, and say so.
	h.requestApprovalIn(h.session(operations.NewSession{WorkspacePath: t.TempDir(), Permissions: "standard"}), "go version")
	h.requestApprovalIn(h.session(operations.NewSession{WorkspacePath: t.TempDir(), Permissions: "standard"}), "curl https://example.com/x")
	p.visit("/approvals")
	p.until(`document.querySelectorAll(".ask .risk").length === 3`)
	grades := p.text(`[...document.querySelectorAll(".ask")].map((e) => e.querySelector(".command").innerText.split(" ")[0] + " " + e.querySelector(".risk").className).sort().join("; ")`)
	if grades != "cd risk high; curl risk medium; go risk low" {
		t.Errorf("grades: %s", grades)
	}
	if bare := p.text(`[...document.querySelectorAll(".ask .risk")].filter((e) => e.innerText.length < 25).map((e) => e.innerText).join()`); bare != "" {
		t.Errorf("without a reason: %s", bare)
	}
	if colours := p.number(`new Set([...document.querySelectorAll(".ask .risk b")].map((e) => getComputedStyle(e).color)).size`); colours != 3 {
		t.Errorf("three grades have %v colours", colours)
	}
	p.phone()
	p.until(`innerWidth < 1280`)
	p.fits("/approvals")
	p.look("risk-phone")
}
