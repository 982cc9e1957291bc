package webtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// The server is killed in the middle of an answer and started again at the same address: the page
// shows that, catches up by itself, and shows everything once.
func TestServerKilledInMidRun(t *testing.T) {
	t.Parallel()
	dir, addr := t.TempDir(), freeAddr(t)
	process := startProcess(t, dir, addr)
	h := &server{T: t, dir: dir, url: process.url, signIn: process.signIn}
	p := h.signedIn()
	p.expectError("net::ERR") // while the server is down
	p.visit("/new")
	p.eval(fmt.Sprintf(`const f = document.getElementById("new"); f.elements.message.value = %q; f.elements.model.value = "demo/script"`, slowAnswer("10ms", 20)))
	p.click("#send")
	p.until(`location.pathname.startsWith("/s/")`)
	p.waitForAnswer("Line 4 of")
	process.kill()
	p.until(`document.body.classList.contains("away")`)
	startProcess(t, dir, addr)
	p.until(`!document.body.classList.contains("away")`)
	p.waitUntilIdle()
	for i := range 20 {
		p.once(fmt.Sprintf("Line %d of", i), ".said.agent:not(.live) p:not(.thinking)")
	}
	shown := p.logged()
	p.do(reload())
	if again := p.logged(); again != shown {
		t.Errorf("what the page caught up with is not what is there\ncaught up %s\nloaded    %s", shown, again)
	}
}

// When a server shuts down and starts again, pages reconnect.
func TestServerRestarted(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	p.expectError("net::ERR")
	h.prompt(id, "say before")
	p.waitForAnswer("before")
	h.restart()
	h.prompt(id, "say afterwards")
	p.waitForAnswer("afterwards")
	p.once("afterwards", ".said.agent")
	p.once("before", ".said.agent")
}

func TestLongConversationOpensFast(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	id := h.session(operations.NewSession{Title: "Ten thousand"})
	s, err := operations.GetSession.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.SessionRef{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	const many = 10000
	var events []chat.Event
	for i := range many {
		body := chat.Body(chat.Received{From: chat.Participant{Name: "ada"}, Blocks: chat.TextBlocks(fmt.Sprintf("message %d", i))})
		events = append(events, chat.Event{At: time.Now(), Body: body})
	}
	for len(events) > 0 {
		n := min(500, len(events))
		if _, err := h.app.DB.Commit(t.Context(), journal.Commit{Thread: chat.ThreadID(s.Thread), Events: events[:n]}); err != nil {
			t.Fatal(err)
		}
		events = events[n:]
	}
	p := h.signedIn()
	var best float64
	for look := range 8 { // a busy machine may need another try
		p.visit("/s/" + id)
		p.waitForText(fmt.Sprint("message ", many-1))
		if took := p.number(`performance.getEntriesByType("navigation")[0].responseEnd`); look == 0 || took < best {
			best = took
		}
		if best <= 1000 {
			break
		}
	}
	if best > 1000*raceFactor {
		t.Errorf("it took %v ms to send", best)
	}
	if n := p.number(`document.querySelectorAll(".said").length`); n > 210 {
		t.Errorf("%v messages are on one page", n)
	}
	first := p.text(`document.querySelector(".said .text").innerText`)
	p.click(".earlier a")
	p.waitForText("Newest messages")
	last := p.text(`[...document.querySelectorAll(".said .text")].at(-1).innerText`)
	var a, b int
	if _, err := fmt.Sscanf(last+" "+first, "message %d message %d", &a, &b); err != nil || a+1 != b {
		t.Errorf("the earlier page ends with %q, the later one begins with %q", last, first)
	}
	if p.text(`document.getElementById("say")`) != "null" {
		t.Error("one can talk into the past")
	}
}

// evil sets window.pwned if it is ever treated as anything but text.
const evil = `"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'{{7*7}}<svg/onload=window.pwned=1>`

func TestNothingThatWasWrittenRuns(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	id := h.session(operations.NewSession{Title: evil})
	name := strings.NewReplacer("/", "_").Replace(evil)
	shot, err := operations.Attach.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.NewAttachment{ID: id, File: operation.Upload(name, strings.NewReader("<script>window.pwned=1</script>"))})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := operations.CreateAgent.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.NewAgent{Name: "evil", SystemPrompt: evil})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(agent.Workspace, name), []byte(evil), 0o600); err != nil {
		t.Fatal(err)
	}
	p := h.signedIn()
	p.visit("/s/" + id)
	if _, err := operations.Say.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.Message{ID: id, Attachments: []string{shot.ID}, Message: "```demo\nsay " + evil +
		"\\n\\n[link](javascript:window.pwned=1) <a href=javascript:window.pwned=1>x</a> ![pic](javascript:window.pwned=1)" +
		"\nthink " + evil + "\ncall bash {\"command\":\"touch x; printf '%s' '<script>window.pwned=1</script><img src=x onerror=window.pwned=1>'\"}\nend\nsay {{last}}\n```\n"}); err != nil {
		t.Fatal(err)
	}
	p.until(`document.querySelector("form.verdict")`)
	p.write(".ask input[name=note]", evil)
	p.click(".ask button.yes")
	p.waitUntilIdle()
	p.eval(`document.querySelectorAll("details").forEach((d) => (d.open = true))`)
	for _, path := range []string{"/s/" + id, "/", "/approvals?state=all", "/s/" + id + "/journal", "/audit", "/search?q=pwned", "/search?q=" + "%22%3E%3Cimg+src%3Dx+onerror%3Dwindow.pwned%3D1%3E",
		"/costs", "/agents", "/agents/chorus", "/agents/evil", "/agents/evil/files/", "/settings", "/doctor", "/no-such-page/%3Cscript%3Ewindow.pwned=1%3C/script%3E"} {
		if strings.HasPrefix(path, "/no-such") {
			p.expectError("404")
		}
		p.visit(path)
		p.until(`document.readyState === "complete"`)
		p.eval(`document.querySelectorAll("details").forEach((d) => (d.open = true))`)
		if path == "/agents/evil/files/" {
			p.until(`document.querySelector("td.main a")`)
			p.click("td.main a") // the file with that name
			p.waitForText("pwned")
			p.until(`document.querySelector("figure.code")`)
		}
		if p.text("window.pwned") != "undefined" {
			t.Errorf("%s executed text", path)
		}
		if n := p.number(`document.querySelectorAll("main script, main img[src=x], main svg[onload], main [onerror], main a[href^=javascript], main style, main iframe").length`); n != 0 {
			t.Errorf("%s has %v elements made from text: %s", path, n, p.text(`document.querySelector("main").innerHTML.slice(0, 3000)`))
		}
	}
}

// Long words and lines do not make a page wider than a phone.
func TestPhone(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{Title: strings.Repeat("Title", 40)})
	p.phone()
	long := strings.Repeat("x", 400)
	p.visit("/s/" + id)
	p.say("say A word: " + long + "\\n\\n```go\\nfunc main() { /* " + long + " */ }\\n```\\n\\n| a | b |\\n|---|---|\\n| " + long + " | 2 |\\n\\n" +
		"`" + long + "`\\n\\n> " + long + "\\n\\n- " + long + "\ncall bash {\"command\":\"touch x; echo " + long + "\"}\nend\nsay done with it")
	p.until(`document.querySelector("form.verdict")`)
	p.fits("/s/" + id + " while it asks")
	p.click(".ask button.yes")
	p.waitUntilIdle()
	p.eval(`document.querySelectorAll("details").forEach((d) => (d.open = true))`)
	p.fits("/s/" + id)
	for _, path := range []string{"/", "/approvals?state=all", "/agents", "/agents/chorus", "/agents/chorus/files/", "/costs", "/audit", "/settings", "/doctor?wait=1", "/search?q=word", "/new", "/s/" + id + "/journal"} {
		if path == "/agents/chorus/files/" {
			continue
		}
		p.visit(path)
		p.eval(`document.querySelectorAll("details").forEach((d) => (d.open = true))`)
		p.fits(path)
	}
	p.visit("/s/" + id)
	if p.text(`getComputedStyle(document.querySelector(".side")).visibility`) != "hidden" {
		t.Error("the list of conversations covers the conversation")
	}
	p.click(".drawer-label")
	p.until(`getComputedStyle(document.querySelector(".side")).visibility === "visible" && document.querySelector(".side").getBoundingClientRect().left >= 0`)
}

// The form below a conversation grows while a run is active, without covering the last message.
func TestLastMessageStaysVisible(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	id := h.session(operations.NewSession{})
	h.prompt(id, "say "+strings.Repeat("one more line\\n\\n", 60))
	p := h.signedIn()
	p.phone()
	p.visit("/s/" + id)
	p.say("wait")
	p.until(`!document.getElementById("stop").hidden`)
	if gap := p.number(`document.scrollingElement.scrollHeight - document.scrollingElement.scrollTop - innerHeight`); gap > 4 {
		t.Errorf("the end is %v pixels below the window", gap)
	}
	// A reader further up is led back to the end with a button that is there only then.
	if p.text(`document.getElementById("latest").hidden`) != "true" {
		t.Error("the end is offered to somebody who is there")
	}
	p.eval(`scrollTo(0, 0)`)
	p.until(`!document.getElementById("latest").hidden`)
	p.click("#latest")
	p.until(`document.getElementById("latest").hidden && document.scrollingElement.scrollHeight - document.scrollingElement.scrollTop - innerHeight < 4`)
}

// fits fails the test if the page is wider than the window.
func (t *tab) fits(what string) {
	t.Helper()
	const wide = `[...document.querySelectorAll("body *")].filter((e) => {
		const box = e.getBoundingClientRect();
		if (box.right <= 391 || getComputedStyle(e).visibility === "hidden") return false;
		for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) if (getComputedStyle(p).overflowX !== "visible") return false;
		return true }).map((e) => e.outerHTML.slice(0, 160))`
	if over := t.number(`document.documentElement.scrollWidth - 390`); over > 0 {
		t.Errorf("%s is %v pixels too wide: %s", what, over, strings.Join(value[[]string](t, wide), "\n"))
	}
}

// What somebody was writing is there again after a look at another page and after a reload, in its own conversation and in the form for a new one. What
// was sent is not, and neither is the text of a message that was edited.
func TestDraftsAreKept(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{Model: "demo/echo"})
	holds := func(where, text string) {
		t.Helper()
		p.until(fmt.Sprintf(`document.querySelector("textarea[name=message]")?.value === %q && document.readyState === "complete"`, text))
		p.do(reload())
		p.until(fmt.Sprintf(`document.querySelector("textarea[name=message]")?.value === %q && document.readyState === "complete"`, text))
		if kept := p.text(`document.querySelector("textarea[name=message]").value`); kept != text {
			t.Errorf("%s holds %q, not %q", where, kept, text)
		}
	}
	p.write("#say textarea", "half a thought")
	p.visit("/new")
	holds("the form for a new conversation", "")
	p.write("#new textarea", "another one")
	p.visit("/costs")
	p.visit("/new")
	holds("the form for a new conversation", "another one")
	p.visit("/s/" + id)
	holds("the conversation", "half a thought")
	p.click("#send")
	p.waitUntilIdle()
	holds("the conversation", "")
	p.visit("/new")
	p.until(`document.querySelector("#new textarea").value === "another one"`)
	p.eval(`document.querySelector("#new [name=model]").value = "demo/echo"`)
	p.click("#send")
	p.until(`location.pathname.startsWith("/s/")`)
	p.waitUntilIdle()
	p.click(`.said.user button[value="edit"]`)
	p.until(`location.search.startsWith("?edit=") && document.querySelector("#say textarea")?.value === "another one"`)
	p.write("#say textarea", ", changed")
	holds("the edited message", "another one, changed")
	p.click("#send")
	p.waitUntilIdle()
	holds("the edited conversation", "")
	p.visit("/new")
	holds("the form for a new conversation", "")
}
