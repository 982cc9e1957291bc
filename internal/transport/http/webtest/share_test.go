package webtest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// A conversation is read by a link without signing in, and nothing else is: no files, no other conversation, no way to write. An end
// counts at once.
func TestConversationsAreSharedByLink(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{Title: "Release <plan>", Permissions: "open"})
	h.prompt(id, "call bash {\"command\":\"echo token sk-ant-api03-"+strings.Repeat("a1B2", 24)+"\"}\nend\nsay The **plan** is ready.")
	p.waitForAnswer("The plan is ready.")
	p.desktop()
	p.click(".talk .menu summary")
	p.click("a[href='/s/" + id + "/share']")
	p.waitForText("No links yet.")
	p.click("main form.filters .button")
	p.until(`document.getElementById("link")?.value.includes("/shared/")`)
	link := strings.TrimPrefix(p.text(`document.getElementById("link").value`), h.url)
	p.look("share-1280")
	p.phone()
	p.until(`innerWidth === 390`)
	p.fits("sharing on a phone")
	p.look("share-390")
	p.desktop()
	p.visit("/s/" + id + "/share")
	p.until(`!document.getElementById("link")`) // it is shown once

	stranger := h.open()
	stranger.visit(link)
	stranger.waitForText("The plan is ready.")
	stranger.waitForText("Release <plan>")
	if text := stranger.text(`document.documentElement.outerHTML`); strings.Contains(text, "sk-ant-api03-a1B2") || strings.Contains(text, id) || strings.Contains(text, "/s/") || strings.Contains(text, "<form") {
		t.Errorf("a stranger is shown too much:\n%s", text)
	}
	stranger.look("shared-1280")
	stranger.phone()
	stranger.until(`innerWidth === 390`)
	stranger.fits("a shared conversation on a phone")
	stranger.dark()
	stranger.look("shared-390-dark")
	stranger.visit("/s/" + id)
	stranger.until(`location.pathname === "/sign-in"`)

	get := func(path string) *http.Response {
		t.Helper()
		res, err := http.Get(h.url + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	if res := get(link); res.StatusCode != 200 || res.Header.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(res.Header.Get("X-Robots-Tag"), "noindex") || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}

	// What is said later is there, too; an end counts at once.
	h.prompt(id, "say And it was shipped.")
	stranger.visit(link)
	stranger.waitForText("And it was shipped.")
	p.visit("/s/" + id + "/share")
	p.click("button[name=end]")
	p.waitForText("revoked")
	stranger.expectError("404")
	stranger.visit(link)
	stranger.waitForText("This link does not work")
	if strings.Contains(stranger.visibleText(), "shipped") {
		t.Error("a link that has ended still shows the conversation")
	}
	lines, err := operations.ListAudit.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.AuditQuery{Decision: "changed"})
	var made, ended bool
	for _, line := range lines.Items {
		made, ended = made || strings.HasPrefix(line.Action, "share create"), ended || strings.HasPrefix(line.Action, "share end")
		if strings.Contains(line.Detail+line.Action, strings.TrimPrefix(link, "/shared/")) {
			t.Error("the token stands in the audit log")
		}
	}
	if err != nil || !made || !ended {
		t.Errorf("audit: %+v, %v", lines.Items, err)
	}

	// Nobody shares what they cannot see, and guessing is slow.
	other := operation.Caller{Principal: h.owner.Principal, Scopes: []operation.Scope{operation.Chat, operation.Read}}
	other.Principal.ID = "somebody-else"
	if _, err := operations.CreateShare.Call(t.Context(), h.app.Service.Operations(), other, operations.NewShare{ID: id}); operation.KindOf(err) != operation.NotFound {
		t.Errorf("somebody else: %v", err)
	}
	status := 0
	for range 130 { // two minutes' worth: the minute may change on the way
		if status = get("/shared/GUESS").StatusCode; status == http.StatusTooManyRequests {
			break
		}
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("guessing is never slowed down: %d", status)
	}
}

// A button that is pressed twice makes one conversation, with its words in it.
func TestAnsweringAgainTwiceIsOnce(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	h.prompt(id, "say one")
	h.prompt(id, "say two")
	p.do(reload())
	p.waitForAnswer("two")
	count := func() int {
		t.Helper()
		list, err := operations.ListSessions.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.SessionQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	for _, button := range []string{"last", "first"} { // a fork, and a new conversation where nothing stands before
		before := count()
		p.visit("/s/" + id)
		p.waitForAnswer("two")
		at := map[string]string{"last": "at(-1)", "first": "at(0)"}[button]
		// Both requests leave the page before the first is answered.
		p.eval(`const b = [...document.querySelectorAll("button[value=anew]")].` + at + `; const body = () => new URLSearchParams(new FormData(b.form, b));
			window.went = await Promise.all([1, 2].map(() => fetch(b.form.action, { method: "POST", body: body() }).then((r) => r.url)))`)
		if one, two := p.text(`went[0]`), p.text(`went[1]`); one != two || !strings.Contains(one, "/s/") {
			t.Errorf("%s: two conversations: %s and %s", button, one, two)
		}
		p.visit(strings.TrimPrefix(p.text(`went[0]`), h.url))
		p.waitForAnswer(map[string]string{"last": "two", "first": "one"}[button])
		if n := p.number(`document.querySelectorAll(".said.user").length`); n != map[string]float64{"last": 2, "first": 1}[button] {
			t.Errorf("%s: %v messages of people", button, n)
		}
		if n := count() - before; n != 1 {
			t.Errorf("%s: %d conversations were made", button, n)
		}
	}
}

// A deleted conversation no longer appears in lists, search, pages and links at once, and comes back as it was.
func TestConversationsAreDeleted(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	ops := h.app.Service.Operations()
	p, id := h.begin(operations.NewSession{Title: "Old plans"})
	h.prompt(id, "say the heliotrope answer")
	p.waitForAnswer("heliotrope")
	shared, err := operations.CreateShare.Call(t.Context(), ops, h.owner, operations.NewShare{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	found := func() int {
		t.Helper()
		hits, err := operations.Search.Call(t.Context(), ops, h.owner, operations.SearchQuery{Text: "heliotrope"})
		if err != nil {
			t.Fatal(err)
		}
		return len(hits.Items)
	}
	if found() == 0 {
		t.Fatal("it cannot be found before")
	}
	p.click(".talk .menu summary")
	p.click("a[href='/s/" + id + "/delete']")
	p.waitForText("Delete “Old plans”?")
	p.look("delete-1280")
	p.phone()
	p.until(`innerWidth === 390`)
	p.fits("deleting on a phone")
	p.desktop()
	p.until(`document.activeElement.textContent === "Delete"`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.waitForText("no longer appears in lists")
	p.waitForText("You can restore it until")
	p.until(`document.querySelectorAll(".sessions a").length === 0`)
	if n := found(); n != 0 {
		t.Errorf("it is found %d times", n)
	}
	_, err = operations.GetSession.Call(t.Context(), ops, h.owner, operations.SessionRef{ID: id})
	_, unknown := operations.GetSession.Call(t.Context(), ops, h.owner, operations.SessionRef{ID: "nosuchsession"})
	if operation.KindOf(err) != operation.NotFound || strings.Replace(err.Error(), id, "nosuchsession", 1) != unknown.Error() {
		t.Errorf("%v, and for one that never was %v", err, unknown)
	}
	if _, err := operations.Say.Call(t.Context(), ops, h.owner, operations.Message{ID: id, Message: "hello"}); operation.KindOf(err) != operation.NotFound {
		t.Errorf("somebody can speak in it: %v", err)
	}
	res, err := http.Get(h.url + shared.Path)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 404 {
		t.Errorf("its link answers %d", res.StatusCode)
	}
	for listing, want := range map[string]int{"": 0, "all": 0, "archived": 0, "deleted": 1} {
		list, err := operations.ListSessions.Call(t.Context(), ops, h.owner, operations.SessionQuery{Listing: listing})
		if err != nil || len(list.Items) != want {
			t.Errorf("%q lists %d, %v", listing, len(list.Items), err)
		}
	}
	p.visit("/search?listing=deleted")
	p.waitForText("Old plans")
	p.look("deleted-1280")
	p.click("main td button.quiet")
	p.until(`location.pathname === "/s/` + id + `"`)
	p.waitForAnswer("heliotrope")
	if found() == 0 {
		t.Error("it cannot be found again")
	}

	// Deleted elsewhere: its page says so, asks for nothing any more, and leads on with what was being written.
	p.write("#say textarea", "and what about Monday?")
	p.eval(`const Real = EventSource; window.opened = []; window.EventSource = class extends Real { constructor(url) { super(url); window.opened.push(url); } }`)
	if _, err := operations.DeleteSession.Call(t.Context(), ops, h.owner, operations.SessionDeletion{ID: id}); err != nil {
		t.Fatal(err)
	}
	p.until(`document.querySelector(".gone")?.innerText.includes("This conversation is gone")`)
	p.until(`document.querySelectorAll(".sessions a").length === 0`)
	p.waitForAnswer("heliotrope") // what was read is still there
	p.phone()
	p.until(`innerWidth === 390`)
	p.fits("a conversation that is gone")
	p.look("gone-390")
	p.desktop()
	p.look("gone-1280")
	p.eval(`document.dispatchEvent(new Event("visibilitychange")); await new Promise((r) => setTimeout(r))`)
	if left := p.text(`[document.querySelectorAll("#say, .head .menu, .log form").length, window.opened.length, document.body.classList.contains("away")].join()`); left != "0,0,false" {
		t.Errorf("forms, streams and a lost connection on a page that is gone: %s", left)
	}
	p.click(".gone a.button")
	p.until(`location.pathname === "/new" && document.querySelector("#new textarea").value === "and what about Monday?"`)

	// A page that comes back after that, for instance from sleep, is told as well.
	p.visit("/search?listing=deleted")
	p.click("main td button.quiet")
	p.until(`location.pathname === "/s/` + id + `"`)
	p.expectError("404")
	p.eval(`Object.defineProperty(document, "hidden", { value: true, configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`)
	if _, err := operations.DeleteSession.Call(t.Context(), ops, h.owner, operations.SessionDeletion{ID: id}); err != nil {
		t.Fatal(err)
	}
	p.eval(`delete document.hidden; document.dispatchEvent(new Event("visibilitychange"))`)
	p.until(`document.querySelector(".gone")`)

	// And for good, at once.
	p.visit("/search?listing=deleted")
	p.waitForText("removed in ") // 29 or 30 days, by the second
	p.click("main td a[href='/s/" + id + "/erase']")
	p.waitForText("Remove this conversation for good?")
	p.click("main button.no")
	p.waitForText("No deleted conversations")
	if _, err := operations.RestoreSession.Call(t.Context(), ops, h.owner, operations.DeletedSessionRef{ID: id}); operation.KindOf(err) != operation.NotFound {
		t.Errorf("it came back: %v", err)
	}
}
