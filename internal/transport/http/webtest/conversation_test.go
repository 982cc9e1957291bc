package webtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"

	"chorus/internal/feed"
	"chorus/internal/operations"
)

func TestSignInAndFirstConversation(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.open()
	p.expectError("401") // a wrong token
	p.visit("/")
	p.waitForText("Sign in")
	p.write("input[name=token]", "wrong\r")
	p.waitForText("This token is wrong, expired or revoked")
	p.visit(strings.TrimPrefix(h.signIn, h.url))
	p.waitForText("Welcome to Chorus")
	p.waitForText("demo/guide")
	p.waitForText("none is running on this machine") // loaded after the page
	p.write("textarea[name=message]", "hello there")
	p.click(".first .button")
	p.until(`location.pathname.startsWith("/s/")`)
	p.waitUntilIdle()
	p.waitForText("hello there")
	p.once("hello there", ".said.user")
	p.visit("/settings")
	p.click(`form[action="/sign-out"] button`)
	p.waitForText("Sign in")
	p.visit("/")
	p.waitForText("Sign in")
}

// once fails the test unless exactly one matching element has a text.
func (t *tab) once(text, selector string) {
	t.Helper()
	if n := t.number(fmt.Sprintf(`[...document.querySelectorAll(%q)].filter(e => e.textContent.includes(%q)).length`, selector, text)); n != 1 {
		t.Errorf("%q stands in %v elements %s\nthe page: %s", text, n, selector, t.visibleText())
	}
}

// slowAnswer is a script for an answer of numbered lines, sent in small pieces.
func slowAnswer(pause string, words int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "slow %s\nchunk 12\nthink first some thoughts about it\n", pause)
	for i := range words {
		fmt.Fprintf(&b, "say Line %d of **this** answer is long enough to need room. `word%d`\\n\n", i, i)
	}
	return b.String()
}

func TestStreamingDoesNotJump(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	h.prompt(id, "say An answer from before.")
	p.waitForAnswer("An answer from before.")
	p.eval(`window.shifts = []; window.tops = new Set();
		new PerformanceObserver((list) => { for (const e of list.getEntries()) window.shifts.push([e.value, ...e.sources.map((s) => s.node?.nodeName + "#" + s.node?.id + "." + s.node?.className)]); }).observe({ type: "layout-shift", buffered: false });
		const first = document.querySelector(".said"), status = document.getElementById("status");
		window.meanwhile = new Set(); // the statuses shown while the answer arrived
		new MutationObserver(() => { if (document.getElementById("live-0")) window.meanwhile.add(status.dataset.status); }).observe(document.querySelector(".talk"), { subtree: true, childList: true, attributes: true });
		window.watch = setInterval(() => window.tops.add(Math.round(first.getBoundingClientRect().top + scrollY)), 5)`)
	p.say(slowAnswer("10ms", 24))
	p.until(`document.querySelectorAll("#log .end").length === 2`)
	if got := p.text(`[...window.meanwhile].join()`); !strings.Contains(got, "running") {
		t.Errorf("while the answer was being written the page said %q of the agent", got)
	}
	p.waitForAnswer("Line 23 of")
	if n := p.number(`window.tops.size`); n != 1 {
		t.Errorf("what was read before moved while the answer came: %s", p.text(`[...window.tops].join()`))
	}
	if sum := p.number(`window.shifts.reduce((n, s) => n + s[0], 0)`); sum > 0.02 {
		t.Errorf("things jumped by %v in all: %s", sum, p.text(`JSON.stringify(window.shifts)`))
	}
	if p.text(`document.getElementById("live")`) != "null" {
		t.Error("the answer in the making is still there beside the answer")
	}
	p.once("Line 23 of", ".said.agent")
	if gap := p.number(`document.scrollingElement.scrollHeight - document.scrollingElement.scrollTop - innerHeight`); gap > 4 {
		t.Errorf("the page is %v pixels above its end", gap)
	}
	// A reader further up is not moved.
	p.eval(`scrollTo(0, 0)`)
	p.eval(fmt.Sprintf("const area = document.querySelector('#say textarea'); area.value = %q; area.form.requestSubmit()", "say one more"))
	p.waitForAnswer("one more")
}

func TestReloadInMidRun(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, _ := h.begin(operations.NewSession{})
	other := p.second()
	other.visit(p.text("location.pathname"))
	p.say(slowAnswer("8ms", 30))
	p.waitForAnswer("Line 4 of")
	other.waitForAnswer("Line 4 of")
	for i := 6; i < 22; i += 5 {
		p.do(reload())
		p.waitForAnswer(fmt.Sprintf("Line %d of", i))
	}
	p.waitUntilIdle()
	other.waitUntilIdle()
	for _, page := range []*tab{p, other} {
		for i := range 30 {
			page.once(fmt.Sprintf("Line %d of", i), ".said.agent p")
		}
		page.once("slow 8ms", ".said.user")
	}
	same(t, p, other)
	before := p.logged()
	p.do(reload())
	if after := p.logged(); after != before {
		t.Errorf("loaded anew the page differs\nbefore %s\nafter  %s", before, after)
	}
}

// logged is the HTML of the conversation without times, and without the keys of forms, which are new with each page.
func (t *tab) logged() string {
	t.Helper()
	return t.text(`(() => { const copy = document.getElementById("log").cloneNode(true);
		copy.querySelectorAll("time, .copy, .copy-text, input[type=hidden][name=key]").forEach((e) => e.remove());
		copy.querySelectorAll("[tabindex]").forEach((e) => e.removeAttribute("tabindex"));
		copy.querySelectorAll("[open]").forEach((e) => e.removeAttribute("open"));
		return copy.innerHTML.replace(/\s+/g, " ") })()`)
}

// same fails the test unless two tabs show the same conversation.
func same(t *testing.T, a, b *tab) {
	t.Helper()
	if a.logged() != b.logged() {
		t.Errorf("two tabs differ\none %s\ntwo %s", a.logged(), b.logged())
	}
}

// A slow response to a sent message does not move the focus back to the form.
func TestSendingKeepsTheFocus(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, _ := h.begin(operations.NewSession{})
	p.eval(`const real = fetch; window.fetch = async (...asked) => { const answer = await real(...asked); if (asked[1]?.method === "POST") await new Promise((go) => (window.letGo = go)); return answer }`)
	p.eval(`document.getElementById("chosen").append(document.createElement("li"))`) // removed when the server has accepted the message
	p.say("say heard")
	p.waitUntilIdle()
	p.until(`window.letGo`)
	p.eval(`document.getElementById("main").focus(); window.letGo()`)
	p.until(`document.getElementById("chosen").children.length === 0`)
	if at := p.text(`document.activeElement.id`); at != "main" {
		t.Errorf("the focus was taken away, to %q", at)
	}
}

func TestSteerAndStop(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, _ := h.begin(operations.NewSession{})
	if p.text(`document.getElementById("steer-mode").hidden`) != "true" || p.text(`document.getElementById("stop").hidden`) != "true" {
		t.Error("there is something to stop before anything began")
	}
	p.say("say working on it\nwait")
	p.waitForAnswer("working on it")
	p.until(`!document.getElementById("steer-mode").hidden && !document.getElementById("stop").hidden`)
	p.write("#say textarea", "also look at this\r") // added to the current run
	p.until(`document.querySelector(".said.steered")`)
	p.once("also look at this", ".said.steered")
	p.eval(`document.querySelector("#steer-mode select").value = ""`)
	p.write("#say textarea", "and then this\r")
	p.until(`document.getElementById("queue").textContent.includes("2 waiting")`) // this one and the added one
	p.click("#stop")
	p.waitForText("aborted")
	p.waitForText("and then this")
	p.until(`document.getElementById("stop").hidden && document.getElementById("queue").textContent === ""`)
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	other, approvals := p.second(), p.second()
	other.visit("/s/" + id)
	approvals.visit("/approvals")
	approvals.waitForText("No pending approvals.")
	script := "```demo\ncall bash {\"command\":\"echo it ran > made.txt && cat made.txt\"}\nend\nsay the end {{last}}\n```"
	p.say(script)
	p.until(`document.querySelector(".ask form.verdict")`)
	p.waitForText("echo it ran > made.txt && cat made.txt")
	p.waitForText("waiting for approval")
	other.until(`document.querySelector(".ask form.verdict")`)
	approvals.until(`document.querySelector(".ask form.verdict")`)
	other.phone()
	other.until(`innerWidth === 390 && ((stop, send) => stop.top === send.top && send.right > 350)(document.getElementById("stop").getBoundingClientRect(), document.getElementById("send").getBoundingClientRect())`)
	p.write(".ask input[name=note]", "go on then")
	p.click(".ask button.yes")
	for _, page := range []*tab{p, other} {
		page.waitUntilIdle()
		page.waitForText("Allowed")
		page.waitForText("go on then")
		page.waitForText("it ran")
		page.until(`!document.querySelector("form.verdict")`)
	}
	approvals.waitForText("No pending approvals.") // answered in another tab
	same(t, p, other)

	approvals.eval(`document.activeElement.blur()`)
	p.say(script)
	p.until(`document.querySelector("form.verdict")`)
	approvals.until(`document.querySelector("form.verdict")`)
	approvals.click(".ask button.no")
	approvals.waitForText("No pending approvals.")
	p.until(`!document.querySelector("form.verdict")`)
	p.waitForText("Denied")
	p.until(`document.querySelectorAll("#log .end").length === 2`)
	p.do(reload())
	p.waitForText("Denied")
	if p.text(`document.querySelector("form.verdict")`) != "null" {
		t.Error("what was answered can be answered again")
	}
}

// A reload of parts of a page keeps text that somebody began to write meanwhile.
func TestReloadKeepsText(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	h.requestApproval("touch first")
	p.visit("/approvals")
	p.until(`document.querySelector("form.verdict")`)
	p.eval(`const real = fetch; window.held = [];
		window.fetch = async (...asked) => {
			const answer = await real(...asked), text = await answer.text();
			await new Promise((go) => window.held.push(go));
			answer.text = async () => { setTimeout(() => (window.renewed = true)); return text };
			return answer }`)
	h.requestApproval("touch second")
	p.eval(`window.before = window.held.length; document.dispatchEvent(new Event("visibilitychange"))`) // makes the page reconnect and reload
	p.until(`window.held.length > window.before`)
	p.write(".ask input[name=note]", "a note")
	p.eval(`window.mine = document.querySelector(".ask").id; window.held.forEach((go) => go())`)
	p.until(`window.renewed && document.querySelectorAll(".ask").length === 2`)
	if note := p.text(`document.getElementById(window.mine).querySelector("input[name=note]").value`); note != "a note" {
		t.Errorf("what was written has become %q", note)
	}
}

// What somebody presses is still there when they let it go, though the page was renewed meanwhile.
func TestReloadKeepsWhatIsPressed(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	id := h.session(operations.NewSession{Title: "The first one"})
	h.prompt(id, "say done")
	p.visit("/")
	link := `[data-renew] a[href="/s/` + id + `"]`
	p.until(`document.querySelector('` + link + `')`)
	x, y := p.at(link, "bottom - 4")
	p.mouse(input.DispatchMouseEventTypeMousePressed, x, y)
	p.eval(`window.pressed = document.querySelector('` + link + `'); const real = fetch;
		window.fetch = async (...asked) => { const answer = await real(...asked); setTimeout(() => (window.asked = true)); return answer }`)
	h.session(operations.NewSession{Title: "The second one"})
	p.eval(`document.dispatchEvent(new Event("visibilitychange"))`) // makes the page reload, if it has not begun to
	p.until(`window.asked`)
	if !value[bool](p, `window.pressed.isConnected`) {
		t.Error("the link was replaced while it was pressed")
	}
	p.mouse(input.DispatchMouseEventTypeMouseReleased, x, y)
	p.until(`location.pathname === "/s/` + id + `"`)
}

// requestApproval makes an agent ask for approval of a command.
func (h *server) requestApproval(run string) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), timeout)
	defer cancel()
	id := h.session(operations.NewSession{})
	if _, err := operations.Say.Call(ctx, h.app.Service.Operations(), h.owner, operations.Message{ID: id, Message: fmt.Sprintf("call bash {\"command\":%q}", run)}); err != nil {
		h.Fatal(err)
	}
	for item, err := range operations.Watch.Follow(ctx, h.app.Service.Operations(), h.owner, operations.WatchRequest{ID: id, After: 0}) {
		if err != nil {
			h.Fatal(err)
		}
		if _, ok := item.(feed.ApprovalRequired); ok {
			return
		}
	}
	h.Fatalf("no approval was requested for %q", run)
}

// An approval for an edit shows the diff.
func TestApprovalShowsTheDiff(t *testing.T) {
	t.Parallel()
	h := newServer(t, "profiles:", "  careful:", "    allow: ['tool:read:.*']", "    ask: ['tool:edit:.*']")
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "greet.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, id := h.begin(operations.NewSession{WorkspacePath: work, Permissions: "careful"})
	p.say("call read {\"path\":\"greet.txt\"}\nend\ncall edit {\"path\":\"greet.txt\",\"old_string\":\"two\",\"new_string\":\"<b>2</b>\"}\nend\nsay done")
	p.until(`document.querySelector("form.verdict")`)
	changes := `document.querySelector(".ask td.code.del")?.innerText.includes("two") && document.querySelector(".ask td.code.add")?.innerText.includes("<b>2</b>")`
	p.until(changes)
	if said := p.text(`document.querySelector(".ask .command").innerText`); said != "edit greet.txt" {
		t.Errorf("the card says %q", said)
	}
	// Side by side, also in the list of approvals.
	p.desktop()
	p.click(`.ask .diffswitch a:last-child`)
	p.until(`location.search === "?diff=split" && document.querySelector(".ask table.split") && ` + changes)
	p.visit("/approvals")
	p.until(`document.querySelector(".ask table.split") && ` + changes)
	p.visit("/s/" + id + "?diff=unified")
	p.until(changes)
	p.click(".ask button.yes")
	p.waitUntilIdle()
	// What was answered is a line, with what was asked behind a click; also after the page is loaded again.
	folded := `document.querySelector(".ask .answer").innerText.startsWith("Allowed by") && document.querySelector(".ask .about > summary").checkVisibility() && !document.querySelector(".ask .command").checkVisibility({ contentVisibilityAuto: true })`
	p.until(folded + ` && document.querySelector(".ask").offsetHeight < 60`)
	p.do(reload())
	p.until(folded)
	p.click(".ask .about > summary")
	p.until(`document.querySelector(".ask .command").checkVisibility({ contentVisibilityAuto: true })`)
	got, err := os.ReadFile(filepath.Join(work, "greet.txt"))
	if err != nil || string(got) != "one\n<b>2</b>\nthree\n" {
		t.Errorf("%v: the file is %q", err, got)
	}
}
