package webtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"chorus/internal/operations"
)

// What an edit changed is shown without a click, live and after a reload.
func TestEditsAreShown(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "greet.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := h.begin(operations.NewSession{WorkspacePath: work, Permissions: "open"})
	p.say("call read {\"path\":\"greet.txt\"}\nend\ncall edit {\"path\":\"greet.txt\",\"old_string\":\"two\",\"new_string\":\"<b>2</b>\"}\nend\ncall bash {\"command\":\"echo no; exit 3\",\"description\":\"Run the tests\"}\nend\nsay done")
	p.waitForAnswer("done")
	shown := `[...document.querySelectorAll("details.call[open] .difftable td.code.add")].some((e) => e.innerText.includes("<b>2</b>"))`
	p.until(shown)
	p.until(`[...document.querySelectorAll("details.call .state")].some((e) => e.textContent.includes("exit code 3"))`)
	p.do(reload())
	p.until(shown)
	p.once("echo no; exit 3", "details.call pre.command")                                                                              // the command, though it has a description
	p.until(`[...document.querySelectorAll("details.call .state")].some((e) => /^exit code 3 · [\d.]+ ?(ms|s)$/.test(e.textContent))`) // and how long it took

	// What failed is said beside what it printed; not all of that is red.
	p.until(`((out) => getComputedStyle(out).color === getComputedStyle(document.body).color)(document.querySelector(".out pre.bad"))`)
	// A conversation that begins with all of it shows the same.
	forks := func() { p.eval(`[...document.querySelectorAll(".said.agent .fork button")].at(-1).click()`) }
	origin := p.text(`location.pathname`)
	forks()
	p.until(`location.pathname !== ` + fmt.Sprintf("%q", origin) + ` && ` + shown + ` && [...document.querySelectorAll("details.call .state")].some((e) => /^exit code 3 · /.test(e.textContent))`)
	p.visit(origin)

	// A long change is folded, live and after a reload: its name and its size are seen. One click shows it.
	long := strings.TrimSuffix(strings.Repeat("a line\\n", 60), "\\n")
	p.say("call write {\"path\":\"long.txt\",\"content\":\"" + long + "\"}\nend\nsay it is written")
	p.waitForAnswer("it is written")
	folded := `[...document.querySelectorAll("details.call")].some((e) => !e.open && /write long.txt \+60 −0 · done/.test(e.querySelector("summary").textContent.replace(/\s+/g, " ")))`
	p.until(folded)
	p.do(reload())
	p.until(folded)
	lines := `[...document.querySelectorAll(".difftable td")].some((e) => e.innerText === "a line" && e.checkVisibility({ contentVisibilityAuto: true }))`
	p.until(`!` + lines)
	p.eval(`[...document.querySelectorAll("details.call > summary")].at(-1).click()`)
	p.until(lines)
}

// What a command prints is shown while it runs, all of it and not its last piece, with how long it runs; folded again when it is done.
func TestLiveOutput(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	work := t.TempDir()
	touch := func(name string) {
		if err := os.WriteFile(filepath.Join(work, name), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { touch("one"); touch("two") })
	p, _ := h.begin(operations.NewSession{WorkspacePath: work, Permissions: "open"})
	const waits = `for f in one two; do echo \"<b>before $f</b>\"; until [ -e $f ]; do sleep 0.05; done; done`
	p.say(`call bash {"command":"` + waits + `","description":"Build it"}` + "\nend\n" + `call bash {"command":"echo it broke; exit 4"}` + "\nend\nsay built")
	shown := func(text string) {
		t.Helper()
		p.until(`[...document.querySelectorAll("details.call[open] .progress")].some((e) => e.checkVisibility() && e.innerText.trim() === ` + "`" + text + "`)")
	}
	shown("<b>before one</b>")
	p.until(`/^running · \d+ s$/.test(document.querySelector("details.call .state").textContent)`)
	p.once("until [ -e $f ]", "details.call[open] pre.command")
	touch("one")
	shown("<b>before one</b>\n<b>before two</b>")
	p.look("live-output")
	touch("two")
	p.waitForAnswer("built")
	p.until(`(([done, failed]) => !done.open && /^done · /.test(done.querySelector(".state").textContent) && /^exit code 4 · /.test(failed.querySelector(".state").textContent))(document.querySelectorAll("details.call"))`)
	p.eval(`document.querySelector("details.call").open = true`)
	p.until(`document.querySelector("details.call .out").innerText.includes("<b>before two</b>")`)
}

// A conversation is renamed, pinned and archived from its page, and comes back when somebody says something in it.
func TestRenamePinArchive(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	h.prompt(id, "say hello")
	p.waitForAnswer("hello")
	p.click(".talk .menu summary")
	p.eval(`document.querySelector(".rename input").value = "Release <2.1>"`)
	p.click(".rename button")
	p.until(`document.getElementById("title")?.textContent === "Release <2.1>" && document.querySelector(".sessions .name").textContent === "Release <2.1>"`)
	p.click(".talk .menu summary")
	p.click(`.acts button[value=pinned]`)
	p.until(`document.querySelector(".side .day")?.textContent === "Pinned"`)
	p.once("Release", ".sessions .name")
	p.click(".talk .menu summary")
	p.click(`.acts button[value=archived]`)
	p.until(`document.querySelectorAll(".sessions a").length === 0`)
	p.visit("/search?listing=archived")
	p.waitForText("Release <2.1>")
	p.visit("/s/" + id)
	p.waitForText("Archived")
	p.say("say again")
	p.waitForAnswer("again")
	p.do(reload())
	p.until(`document.querySelector(".side .day")?.textContent === "Today"`)
}

// Model, permissions and mode are chosen below the message and count at once.
func TestChips(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	p.eval(`const s = document.querySelector("select[name=permissions]"); s.value = "locked"; s.dispatchEvent(new Event("change"))`)
	p.waitForText("Permissions from the next message on: locked")
	p.eval(`const m = document.querySelector("select[name=work]"); m.value = "plan"; m.dispatchEvent(new Event("change"))`)
	p.waitForText("Applies from the next message on")
	s, err := operations.GetSession.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.SessionRef{ID: id})
	if err != nil || s.Permissions != "locked" || s.Mode != "plan" {
		t.Errorf("%v: the session has the permissions %q and the mode %q", err, s.Permissions, s.Mode)
	}
	p.eval(`const m = document.querySelector("select[name=model]"); m.value = "demo/guide"; m.dispatchEvent(new Event("change"))`)
	p.waitForText("demo/guide answers from the next message on")
	p.do(reload())
	p.until(`["model", "permissions", "work"].map((n) => document.querySelector("select[name=" + n + "]").selectedOptions[0].textContent).join() === "demo/guide,locked,plan"`)
	p.eval(`const m = document.querySelector("select[name=model]"); m.value = "demo/script"; m.dispatchEvent(new Event("change"))`)
	p.waitForText("demo/script answers from the next message on")
	p.say("say hello")
	p.waitForAnswer("hello")
	if s, err = operations.GetSession.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.SessionRef{ID: id}); err != nil || s.Permissions != "locked" {
		t.Errorf("%v: a message changed the permissions to %q", err, s.Permissions)
	}

	// Another agent begins another conversation, with what was being written.
	if _, err := operations.CreateAgent.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.NewAgent{Name: "helper", SystemPrompt: "You help."}); err != nil {
		t.Fatal(err)
	}
	p.visit("/s/" + id)
	p.write("#say textarea", "what do you think?")
	p.eval(`const a = document.querySelector("select[data-new]"); a.value = "helper"; a.dispatchEvent(new Event("change"))`)
	p.until(`location.pathname === "/new" && document.querySelector("#new [name=agent]").value === "helper" && document.querySelector("#new textarea").value === "what do you think?"`)
	p.phone()
	p.until(`innerWidth === 390`)
	p.fits("a new conversation")
	p.visit("/s/" + id)
	for _, width := range []func(){p.phone, p.desktop} {
		width()
		p.until(`document.querySelector(".chips").scrollWidth <= document.querySelector(".chips").clientWidth + 1`) // no chip is cut off
	}
}

// A new conversation begins in a composer: who answers, with which model and rights, files, and where. What is refused is said there, and
// nothing that was written is lost.
func TestNewConversationIsAComposer(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	if _, err := operations.CreateAgent.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.NewAgent{Name: "helper", SystemPrompt: "You help."}); err != nil {
		t.Fatal(err)
	}
	p := h.signedIn()
	p.desktop()
	p.visit("/new")
	p.expectError("400")
	p.eval(`const data = new DataTransfer(); for (const name of ["one.txt", "two.txt"]) data.items.add(new File(["text of " + name], name, { type: "text/plain" }));
		document.querySelector("main").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }))`)
	p.until(`document.querySelectorAll("#chosen li").length === 2`)
	p.click("#chosen li:first-child .remove")
	p.until(`document.querySelectorAll("#chosen li").length === 1`)
	p.eval(`const f = document.getElementById("new").elements; f.agent.value = "helper"; f.model.value = "demo/script"; f.permissions.value = "locked"; f.workspacePath.value = "/no/such/folder"; f.message.value = "\u0060\u0060\u0060demo\nsay I began\n\u0060\u0060\u0060\nSee the file."`)
	p.do(chromedp.Focus(chromedp.CSS("#new textarea")), chromedp.KeyEvent(kb.Enter))
	p.until(`!document.getElementById("problem").hidden && document.getElementById("problem").innerText.includes("/no/such/folder") && document.querySelector(".where").open`)
	p.look("new-problem")
	if kept := p.text(`[document.querySelector("#new textarea").value.split("\n")[1], document.getElementById("files").files.length, location.pathname].join()`); kept != "say I began,1,/new" {
		t.Errorf("after a refusal: %s", kept)
	}
	p.eval(`document.getElementById("new").elements.workspacePath.value = ""`)
	p.do(chromedp.Focus(chromedp.CSS("#new textarea")), chromedp.KeyEvent(kb.Enter))
	p.until(`location.pathname.startsWith("/s/")`)
	p.waitForAnswer("I began")
	p.once("two.txt", ".said.user .call .label")
	s, err := operations.GetSession.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.SessionRef{ID: strings.TrimPrefix(p.text("location.pathname"), "/s/")})
	if err != nil || s.Agent != "helper" || s.Model != "script" && s.Model != "demo/script" || s.Permissions != "locked" {
		t.Errorf("%v: %s with %s under %s", err, s.Agent, s.Model, s.Permissions)
	}
	// A command is not said to the agent.
	p.visit("/new")
	p.write("#new textarea", "/help\r")
	p.until(`location.pathname.startsWith("/s/") && document.querySelector(".command")?.innerText.includes("Commands that agents run in the background")`)
	if n := p.number(`document.querySelectorAll(".said").length`); n != 0 {
		t.Error("a command was said to the agent")
	}
	// Without scripts the form comes back as it was filled in.
	p.eval(`const body = new URLSearchParams({ message: "keep <this>", workspacePath: "/no/such/folder", agent: "helper" });
		window.plain = new DOMParser().parseFromString(await (await fetch("/new", { method: "POST", body })).text(), "text/html")`)
	if back := p.text(`["textarea", "[name=workspacePath]", "[name=agent]"].map((q) => plain.querySelector("#new " + q).value).join("|") + plain.getElementById("problem").textContent.includes("/no/such/folder")`); back != "keep <this>|/no/such/folder|helpertrue" {
		t.Errorf("the form came back with %q", back)
	}
}

// The first message is completed like any other, by what the agent and the folder that are chosen have; and one that is refused leaves no
// empty conversation behind.
func TestFirstMessageIsCompleted(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "greet.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := h.signedIn()
	p.desktop()
	p.visit("/new")
	p.eval(`const f = document.getElementById("new").elements; f.model.value = "demo/script"; f.workspacePath.value = ` + strconv.Quote(work))
	p.do(chromedp.Focus(chromedp.CSS("#new textarea")), chromedp.KeyEvent("/mod"))
	p.until(`document.querySelector("#completions [role=option]")?.textContent.includes("/model")`)
	p.look("new-completions")
	p.eval(`const area = document.querySelector("#new textarea"); area.value = ""; area.dispatchEvent(new Event("input"))`)
	p.do(chromedp.KeyEvent("say I saw @gree"))
	p.until(`document.querySelector("#completions [role=option]")?.textContent.includes("greet.go")`)
	p.do(chromedp.KeyEvent(kb.ArrowDown))
	p.eval(`window.shown = document.querySelector("#completions [role=option]"); document.querySelector("#new textarea").dispatchEvent(new Event("input"))`)
	p.until(`!shown.isConnected && document.querySelector("#completions [aria-selected=true]")?.textContent.includes("greet.go")`) // a later answer keeps the choice
	p.do(chromedp.KeyEvent(kb.Enter))                                                                                              // chooses, and does not send
	p.until(`document.querySelector("#new textarea").value.startsWith("say I saw @greet.go ") && location.pathname === "/new"`)
	// A message that is too long, and a file that is: nothing is begun.
	before := h.countSessions()
	p.eval(`window.refused = await Promise.all([false, true].map(async (file) => {
		const body = new FormData();
		body.set("message", "x".repeat(1100000));
		if (file) body.set("files", new File(["text"], "a.txt"));
		return (await fetch("/new", { method: "POST", body, headers: { "X-Chorus": "1" } })).status;
	}))`)
	p.expectError("400")
	if got := p.text(`refused.join()`); got != "400,400" {
		t.Errorf("answered with %s", got)
	}
	if n := h.countSessions(); n != before {
		t.Errorf("%d conversations instead of %d", n, before)
	}
	p.do(chromedp.Focus(chromedp.CSS("#new textarea")), chromedp.KeyEvent(kb.Enter))
	p.waitForAnswer("I saw @greet.go")
}

// Files are dropped, taken away again, and sent; names of files are completed.
func TestDropFilesAndNameThem(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	work := t.TempDir()
	for _, name := range []string{"greet.go", "secret.log", ".gitignore"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte("*.log\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, _ := h.begin(operations.NewSession{WorkspacePath: work})
	p.eval(`const data = new DataTransfer(); for (const name of ["one.txt", "two.txt"]) data.items.add(new File(["text of " + name], name, { type: "text/plain" }));
		document.querySelector(".talk").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }))`)
	p.until(`document.querySelectorAll("#chosen li").length === 2`)
	p.click("#chosen li:first-child .remove")
	p.until(`document.querySelectorAll("#chosen li").length === 1 && document.querySelector("#chosen").textContent.includes("two.txt")`)
	p.eval(`const data = new DataTransfer(); data.items.add(new File(["pasted"], "three.txt", { type: "text/plain" }));
		document.querySelector("#say textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }))`)
	p.until(`document.querySelectorAll("#chosen li").length === 2 && document.querySelector("#chosen").textContent.includes("three.txt")`)
	p.eval(`const area = document.querySelector("#say textarea"); area.focus(); area.setRangeText("\u0060\u0060\u0060demo\nsay I read it\n\u0060\u0060\u0060\n", 0, 0, "end")`)
	p.do(chromedp.KeyEvent("see @gree"))
	p.until(`document.querySelector("#completions [role=option]")?.textContent.includes("greet.go")`)
	if got := p.text(`document.getElementById("completions").textContent`); strings.Contains(got, "secret.log") {
		t.Errorf("an ignored file is offered: %s", got)
	}
	p.do(chromedp.KeyEvent(kb.Tab))
	p.until(`document.querySelector("#say textarea").value.endsWith("see @greet.go ")`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.waitForAnswer("I read it")
	p.once("two.txt", ".said.user .call .label")
	p.once("three.txt", ".said.user .call .label")
	if got := p.text(`document.getElementById("title").textContent`); strings.Contains(got, "attachment") {
		t.Errorf("the title is %q", got)
	}
	if n := p.number(`document.querySelectorAll("#chosen li").length`); n != 0 {
		t.Errorf("%v files are still chosen", n)
	}
}

// Messages that are sent quickly arrive in order, each with its own files. If one fails, it and those after it are in the form again, and
// in the draft until then.
func TestMessagesArriveInOrder(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, _ := h.begin(operations.NewSession{})
	p.eval(`window.held = [];
		const real = window.fetch;
		window.fetch = (url, options) => options?.body instanceof FormData && options.body.has("message")
			? new Promise((send, fail) => held.push({ message: options.body.get("message"), files: options.body.getAll("files").map((f) => f.name).join(), send: () => send(real(url, options)), fail, lose: () => real(url, options).finally(() => fail(new TypeError("the response is lost"))) }))
			: real(url, options)`)
	drop := func(name string) {
		p.eval(`const data = new DataTransfer(); data.items.add(new File([new Uint8Array(9)], "` + name + `"));
			document.querySelector(".talk").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }))`)
	}
	send := func(text string) {
		p.say(text)
		p.until(`document.querySelector("#say textarea").value === "" && document.querySelectorAll("#chosen li").length === 0`)
	}
	drop("one.bin")
	send("say first")
	send("say second")
	drop("three.bin")
	send("say third")
	p.write("#say textarea", "not sent yet")
	sending := func() string { return p.text(`held.map((h) => h.message + " " + h.files).join("|")`) }
	if got := sending(); got != "say first one.bin" {
		t.Errorf("sent at the same time: %s", got)
	}
	draft := `Object.entries(sessionStorage).find(([name]) => name.startsWith("draft:"))[1]`
	if got := p.text(draft); got != "say first\nsay second\nsay third\nnot sent yet" {
		t.Errorf("the draft is %q", got)
	}
	p.eval(`held[0].send()`)
	p.waitForAnswer("first")
	p.until(`held.length === 2`)
	if got := sending(); got != "say first one.bin|say second " {
		t.Errorf("sent: %s", got)
	}
	p.eval(`held[1].fail(new TypeError("the network is down"))`)
	p.until(`document.querySelector("#say textarea").value === "say second\nsay third\nnot sent yet" && document.querySelector("#chosen")?.textContent.includes("three.bin")`)
	if got := sending(); got != "say first one.bin|say second " {
		t.Errorf("sent after a failure: %s", got)
	}
	p.click("#send")
	p.until(`held.length === 3`)
	if got := sending(); got != "say first one.bin|say second |say second\nsay third\nnot sent yet three.bin" {
		t.Errorf("sent at last: %q", got)
	}
	p.eval(`held[2].send()`)
	p.until(`((said) => said.length === 2 && said[0].innerText.includes("one.bin") && said[1].innerText.includes("three.bin"))([...document.querySelectorAll(".said.user")])`)
	p.until(`!Object.keys(sessionStorage).some((name) => name.startsWith("draft:"))`)

	// The server has it, but the browser does not know: sent again, it is the same message.
	send("say only once")
	p.eval(`held[3].lose()`)
	p.until(`document.querySelector("#say textarea").value === "say only once"`)
	p.click("#send")
	p.until(`held.length === 5`)
	p.eval(`held[4].send()`)
	p.until(`!Object.keys(sessionStorage).some((name) => name.startsWith("draft:"))`)
	p.waitForAnswer("only once")
	p.waitUntilIdle()
	if n := p.number(`document.querySelectorAll(".said.user").length`); n != 3 {
		t.Errorf("%v messages instead of 3", n)
	}
}

// A message is edited in a new conversation, answered again, and a failed run is tried again where it is.
func TestEditAnswerAgainAndRetry(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	h.prompt(id, "say first answer")
	p.waitForAnswer("first answer")
	h.prompt(id, "say second answer")
	p.waitForAnswer("second answer")
	p.eval(`[...document.querySelectorAll(".said.user button[value=edit]")].at(-1).click()`)
	p.until(`location.search.startsWith("?edit=") && document.querySelector("#say textarea")?.value === "say second answer"`)
	p.waitForAnswer("first answer")
	if p.text(`[...document.querySelectorAll(".said")].some((e) => e.textContent.includes("second answer"))`) != "false" {
		t.Error("the message that is edited is still in the new conversation")
	}
	p.eval(`document.querySelector("#say textarea").value = "say third answer"`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.waitForAnswer("third answer")
	p.waitUntilIdle()
	before := p.text("location.pathname")
	p.eval(`[...document.querySelectorAll(".said.agent button[value=anew]")].at(-1).click()`)
	p.until(`location.pathname !== "` + before + `"`)
	p.waitForAnswer("third answer")
	p.waitForAnswer("first answer")
	p.visit("/s/" + id)
	h.prompt(id, "fail refused")
	p.until(`document.querySelector(".end.bad button[value=retry]")`)
	p.click(".end.bad button[value=retry]")
	p.until(`document.querySelectorAll(".end.bad").length === 2`)
	p.until(`[...document.querySelectorAll(".said.user")].filter((e) => e.textContent.includes("fail refused")).length === 2`)
}

// Ctrl+K goes to a page or a conversation, ? shows the keys.
func TestPaletteAndShortcuts(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	id := h.session(operations.NewSession{Title: "The parser"})
	p := h.signedIn()
	p.visit("/costs")
	p.eval(`document.activeElement.blur()`)
	p.do(chromedp.KeyEvent("?"))
	p.until(`document.getElementById("shortcuts")?.open`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`!document.getElementById("shortcuts").open`)
	p.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(2)))
	p.until(`document.getElementById("go")?.open && document.activeElement.type === "search"`)
	p.do(chromedp.KeyEvent("pars"))
	p.until(`document.querySelector("#go [aria-selected=true]")?.textContent.includes("The parser")`)
	p.do(chromedp.KeyEvent(kb.Escape)) // closes it, also when something was typed
	p.until(`!document.getElementById("go").open`)
	p.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(2)))
	p.until(`document.getElementById("go").open`)
	p.do(chromedp.KeyEvent("pars"))
	p.until(`document.querySelector("#go [aria-selected=true]")?.textContent.includes("The parser")`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`location.pathname === "/s/` + id + `"`)
}

// "Always" on the page shows what else it would allow, and keeps the rule.
func TestAlwaysOnThePage(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, _ := h.begin(operations.NewSession{Permissions: "standard"})
	p.say("call bash {\"command\":\"touch made.txt\"}\nend\nsay it is done")
	p.until(`document.querySelector("form.verdict .always")`)
	p.click("form.verdict .always")
	p.waitForText("Always allow")
	p.until(`document.querySelectorAll("form.step").length > 0`)
	if samples := p.text(`[...document.querySelectorAll("form.step:last-of-type .samples")].map((e) => e.className + ": " + e.innerText.replace(/\n/g, ", ")).join("; ")`); !strings.Contains(samples, "samples yes: touch other") || !strings.Contains(samples, "samples: cd .. && touch made.txt") {
		t.Errorf("what it would allow too, and what would still be asked: %s", samples)
	}
	if shown := p.text(`[...document.querySelectorAll("form.step pre")].some((e) => e.checkVisibility())`); shown != "false" {
		t.Error("an expression is shown without a click")
	}
	p.click("form.step:last-of-type button.button")
	p.waitForAnswer("it is done")
	p.say("call bash {\"command\":\"touch made.txt\"}\nend\nsay a second time")
	p.waitForAnswer("a second time")
	if n := p.number(`document.querySelectorAll(".ask").length`); n != 1 {
		t.Errorf("it was asked %v times", n)
	}
}
