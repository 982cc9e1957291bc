package webtest

import (
	"testing"

	"github.com/chromedp/cdproto/page"

	"chorus/internal/operations"
)

// toldNotices stands in for the browser's notifications, which are enabled. What was told is in window.told.
const toldNotices = `window.told = []; window.Notification = class extends EventTarget {
	static permission = "granted";
	constructor(title, more) { super(); window.told.push(more.body); window.note = this; }
	close() {} }`

// noticing opens a tab whose notifications are enabled.
func (t *tab) noticing() *tab {
	t.Helper()
	call(t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: toldNotices})
	return t
}

// hides hides or shows the page, as another tab in front of it does.
func (t *tab) hides(hidden string) {
	t.Helper()
	t.eval(`performance.clearResourceTimings(); Object.defineProperty(document, "hidden", { value: ` + hidden + `, configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`)
}

// Whoever enabled notifications is told of an approval on whatever page of Chorus is open behind other windows, once, with a way there. Of
// several pages the one that was looked at last tells, and another when that is closed. Nobody is told of what he looks at.
func TestNoticesOnAnyPage(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	talk := h.session(operations.NewSession{Title: "First", Permissions: "standard"})
	first := h.signedIn().noticing()
	second := first.second().noticing()
	first.visit("/costs")
	second.visit("/settings")
	watches := `performance.getEntriesByType("resource").some((e) => e.name.includes("/api/approvals?") && e.responseEnd)`
	ask := func(command string) {
		t.Helper()
		h.requestApprovalIn(h.session(operations.NewSession{Title: "About " + command, Permissions: "standard"}), command)
	}
	told := `window.told.join("; ")`

	h.requestApprovalIn(talk, "touch a")
	second.until(`document.querySelector(".bar nav .badge")?.textContent === "1"`)
	first.hides("true")
	second.hides("true")
	second.until(watches)
	ask("touch b")
	second.until(told + ` === "About touch b: waiting for your approval"`)
	if got := first.text(told); got != "" {
		t.Errorf("the other page told %q", got)
	}
	second.eval(`window.open = (path) => (window.opened = path); window.note.dispatchEvent(new Event("click"))`)
	second.until(`window.opened?.startsWith("/s/")`)

	// The one that was looked at since tells.
	first.hides("false")
	first.hides("true")
	first.until(watches)
	ask("touch c")
	first.until(told + ` === "About touch c: waiting for your approval"`)
	if got := second.text(told); got != "About touch b: waiting for your approval" {
		t.Errorf("the page that was looked at earlier told %q", got)
	}

	// It is closed, here by going elsewhere.
	second.eval(`performance.clearResourceTimings()`)
	first.visit("/sign-in")
	second.until(watches)
	ask("touch d")
	second.until(told + `.endsWith("About touch d: waiting for your approval")`)
	if got := second.text(`window.told.length`); got != "2" {
		t.Errorf("%s notifications: %s", got, second.text(told))
	}
}
