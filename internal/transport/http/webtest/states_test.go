package webtest

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"chorus/internal/operations"
)

// That something failed or waits is seen on every page, while it is open: on that of the conversation, on that of another one, and on
// pages about other things. Somebody who looks elsewhere is notified.
func TestStatesAreSeenEverywhere(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	h.inWindows()
	first := h.session(operations.NewSession{Title: "First"})
	second := h.session(operations.NewSession{Title: "Second"})
	p := h.signedIn()
	p.desktop()
	p.visit("/s/" + first)
	other := p.second()
	other.desktop()
	other.visit("/settings")
	row := func(title, class, word string) string {
		return `[...document.querySelectorAll(".sessions li")].some((e) => e.querySelector(".name").textContent === "` + title + `" && e.querySelector(".dot.` + class + `") && e.querySelector("small").textContent.includes("` + word + `"))`
	}
	h.requestApprovalIn(second, "touch x")
	for _, tab := range []*tab{p, other} {
		tab.until(row("Second", "waiting", "waiting for approval"))
		tab.until(`document.querySelector(".bar nav .badge")?.textContent === "1"`)
	}
	p.say("fail refused")
	p.until(`document.querySelector(".end.bad")`)
	for _, tab := range []*tab{p, other} {
		tab.until(row("First", "failed", "failed"))
	}
	failed := `document.title.startsWith("! First") && document.getElementById("status-text").textContent === "the last run failed" && document.querySelector("#status .dot.failed")`
	p.until(failed)
	p.look("failed")
	p.do(reload())
	p.until(failed)
	p.say("say all is well")
	p.waitForAnswer("all is well")
	p.until(`document.title.startsWith("First") && document.getElementById("status-text").textContent === "ready" && !document.querySelector("#status .dot.failed")`)
	other.until(`!` + row("First", "failed", "failed"))
	other.visit("/")
	other.until(`document.querySelector(".tiles .ask b")?.textContent === "1"`)

	// A page in the background asks for attention.
	if _, err := chromedp.CallBrowser(p.ctx, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "notifications"},
		Setting: browser.PermissionSettingGranted, BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID}); err != nil {
		t.Fatal(err)
	}
	p.do(reload())
	p.until(`Notification.permission === "granted" && document.getElementById("notify").hidden`)
	p.until(`performance.getEntriesByType("resource").some((e) => e.name.includes("/frame?"))`) // its stream is there: a page that hides before has none
	p.eval(`window.told = []; window.Notification = class extends EventTarget { static permission = "granted"; constructor(title, more) { super(); window.told.push(more.body); } }`)
	p.hides("true")
	p.until(`performance.getEntriesByType("resource").some((e) => e.name.includes("/api/approvals?") && e.responseEnd)`)
	h.requestApprovalIn(first, "touch y")
	p.until(`window.told.join() === "First: waiting for your approval"`)
}

// The list of conversations is filtered while somebody types, and each row has a menu: rename, pin, archive, share, delete. All of it with
// the keyboard, and on a phone.
func TestListOfConversations(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	ids := map[string]string{}
	for _, title := range []string{"Plan the release", "Fix the <parser>", "Old notes"} {
		ids[title] = h.session(operations.NewSession{Title: title})
	}
	p := h.signedIn()
	p.desktop()
	p.visit("/costs")
	names := `[...document.querySelectorAll(".sessions .name")].filter((e) => e.checkVisibility()).map((e) => e.textContent).sort().join()`
	p.until(names + ` === "Fix the <parser>,Old notes,Plan the release"`)
	p.click("#find")
	p.until(`document.activeElement.name === "q"`)
	p.do(chromedp.KeyEvent("pars"))
	p.until(names + ` === "Fix the <parser>"`)
	p.look("sidebar-filter")
	h.session(operations.NewSession{Title: "Another parser"}) // the list is renewed and stays filtered
	p.eval(`document.querySelector("#filter input").dispatchEvent(new Event("input"))`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`document.getElementById("filter").hidden && document.activeElement.id === "find" && document.querySelectorAll(".sessions li[hidden]").length === 0`)

	open := func(title string) {
		t.Helper()
		p.until(`[...document.querySelectorAll(".sessions .name")].some((e) => e.textContent === "` + title + `")`)
		p.eval(`[...document.querySelectorAll(".sessions li")].find((e) => e.querySelector(".name").textContent === "` + title + `").querySelector(".row-menu").focus()`)
		p.do(chromedp.KeyEvent(kb.Enter))
		p.until(`document.getElementById("row-menu")?.open && document.activeElement.name === "title" && document.activeElement.value === "` + title + `"`)
	}
	press := func(words string) {
		t.Helper()
		p.eval(`[...document.querySelectorAll("#row-menu .button")].find((b) => b.textContent === "` + words + `").click()`)
		p.until(`!document.getElementById("row-menu")`)
	}
	open("Fix the <parser>")
	p.look("row-menu")
	p.do(chromedp.KeyEvent("Mend the parser"), chromedp.KeyEvent(kb.Enter))
	p.until(`!document.getElementById("row-menu") && ` + names + `.includes("Mend the parser") && !` + names + `.includes("Fix")`)
	open("Old notes")
	press("Pin")
	p.until(`document.querySelector(".recent .day").textContent === "Pinned" && document.querySelector(".recent .sessions .name").textContent === "Old notes"`)
	open("Old notes")
	press("Archive")
	p.until(`!` + names + `.includes("Old notes")`)
	open("Plan the release")
	press("Delete…")
	p.waitForText("Delete “Plan the release”?")
	p.click("main .button.no")
	p.waitForText("no longer appears in lists")
	p.until(`!` + names + `.includes("Plan the release")`)

	// The page of a conversation that is renamed in the list has its new title at once, and so has that of another tab.
	id := ids["Fix the <parser>"]
	p.visit("/s/" + id)
	other := p.second()
	other.visit("/s/" + id)
	other.until(`document.getElementById("title").textContent === "Mend the parser"`)
	open("Mend the parser")
	p.do(chromedp.KeyEvent("The parser"), chromedp.KeyEvent(kb.Enter))
	for _, tab := range []*tab{p, other} {
		tab.until(`document.getElementById("title").textContent === "The parser" && document.querySelector(".sessions [aria-current] .name").textContent === "The parser"`)
	}
	p.phone()
	p.click(".drawer-label")
	p.until(`document.querySelector(".side").getBoundingClientRect().left >= 0`)
	open("The parser")
	p.fits("the menu of a row on a phone")
	p.look("row-menu-390")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`!document.getElementById("row-menu")`)
	if !strings.Contains(p.text(`document.activeElement.getAttribute("href")`), id) {
		t.Error("the focus is lost when the menu closes")
	}
}
