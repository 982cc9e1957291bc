package webtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"chorus/internal/operations"
)

// fill replaces what a field holds, as somebody would who selects all and types.
func (t *tab) fill(selector, text string) {
	t.Helper()
	t.until(fmt.Sprintf(`document.querySelector(%q) !== null`, selector)) // the page may have come, and not yet all of it
	t.eval(fmt.Sprintf(`const f = document.querySelector(%q); f.value = %q; f.dispatchEvent(new Event("input", { bubbles: true })); f.dispatchEvent(new Event("change", { bubbles: true }))`, selector, text))
}

// An agent is made on a page that shows what its model will be sent, which is what is sent then; a second person who saves an older
// version is shown the difference and overwrites nothing without having seen it.
func TestAgentsAreMadeAndEdited(t *testing.T) {
	t.Parallel()
	h := newServer(t, "model: demo/script")
	p := h.signedIn()
	p.desktop()
	p.visit("/agents")
	p.click("a[href='/new-agent']")
	p.until(`document.activeElement.name === "name"`)
	p.do(chromedp.KeyEvent("frontend"), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("You look after <b>the web pages</b>."))
	p.until(`document.querySelector("#preview pre").textContent.includes("You look after <b>the web pages</b>.")`) // it follows what is typed
	p.until(`document.querySelector("#preview .big b").textContent !== "0"`)
	all := p.number(`document.querySelectorAll(".tickboxes input").length`)
	p.click("input[name=which][value=some]")
	p.click("input[name=tools][value=read]")
	p.click("input[name=tools][value=bash]")
	p.until(`[...document.querySelectorAll("#preview summary")].some((e) => e.textContent.startsWith("Tools 2,"))`)
	if all < 10 {
		t.Errorf("%v tools can be chosen", all)
	}
	p.eval(`document.querySelector("select[name=model]").value = "demo/script"`)
	p.fill("select[name=permissions]", "locked")
	p.until(`document.querySelector("#preview").innerText.includes("demo/script") && document.querySelector("#preview").innerText.includes("permissions locked")`)
	p.look("agent-new-1280")
	p.click("button[value=save]")
	p.until(`location.pathname === "/agents/frontend"`)
	p.waitForText("You look after <b>the web pages</b>.")
	if a, err := operations.GetAgent.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.AgentRef{Name: "frontend"}); err != nil || a.OwnModel != "demo/script" || a.Permissions != "locked" {
		t.Errorf("model %q, permissions %q, %v", a.OwnModel, a.Permissions, err)
	}

	// What was shown is what is sent.
	p.click("a[href='/agents/frontend/edit']")
	p.until(`document.querySelector("#preview pre")`)
	shown := p.text(`document.querySelector("#preview pre").textContent`)
	id := h.session(operations.NewSession{Agent: "frontend"})
	h.prompt(id, "say hello")
	sent, err := operations.Requests.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.EventRange{ID: id, Limit: 1})
	if err != nil || len(sent.Items) != 1 {
		t.Fatal(sent, err)
	}
	if sent.Items[0].System != shown {
		t.Errorf("the page shows\n%s\n\nand the model is sent\n%s", shown, sent.Items[0].System)
	}
	if got := strings.Join(sent.Items[0].Tools, ","); got != "read" { // a locked agent is offered no shell
		t.Errorf("tools: %s", got)
	}

	// Somebody else is quicker.
	other := p.second()
	other.visit("/agents/frontend/edit")
	other.fill("textarea[name=prompt]", "You look after the server.")
	other.click("button[value=save]")
	other.until(`location.pathname === "/agents/frontend"`)
	p.fill("textarea[name=prompt]", "You look after the phone pages.")
	p.expectError("409")
	p.click("button[value=save]")
	p.waitForText("Somebody else saved this agent after you opened it")
	p.until(`[...document.querySelectorAll(".conflict td.code.del")].some((e) => e.textContent.includes("the server")) && [...document.querySelectorAll(".conflict td.code.add")].some((e) => e.textContent.includes("the phone pages"))`)
	p.until(`document.querySelector("textarea[name=prompt]").value === "You look after the phone pages."`) // nothing typed is lost
	p.look("agent-conflict-1280")
	if a, err := operations.GetAgent.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.AgentRef{Name: "frontend"}); err != nil || a.SystemPrompt != "You look after the server." {
		t.Errorf("%q, %v", a.SystemPrompt, err)
	}
	p.phone()
	p.until(`innerWidth === 390`)
	p.fits("a conflict on a phone")
	p.look("agent-conflict-390")
	p.desktop()
	p.click("button[value=save]") // now with open eyes
	p.until(`location.pathname === "/agents/frontend"`)
	p.waitForText("You look after the phone pages.")

	// A name that is taken is said beside what was typed.
	p.visit("/new-agent")
	p.write("input[name=name]", "frontend")
	p.write("textarea[name=prompt]", "Another one.")
	p.click("button[value=save]")
	p.waitForText("there is already an agent of that name")
	p.until(`document.querySelector("textarea[name=prompt]").value === "Another one."`)

	// A doc is written from there, and is part of the prompt.
	p.visit("/agents/frontend/edit")
	p.write("input[name=doc]", "style")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`location.pathname === "/memory" && document.querySelector("textarea[name=text]")`)
	p.fill("textarea[name=text]", "Short words.")
	p.click("button[value=edit]")
	p.waitForText("Short words.")
	p.visit("/agents/frontend/edit")
	p.until(`document.querySelector("#preview pre").textContent.includes("Short words.")`)

	// What it remembers and what it is taught are there, and are told to the model once somebody has looked at them.
	h.file("agents/frontend/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Ships the pages\n---\nShip.\n")
	p.click(".known a[href='/memory?path=MEMORY.md'], .none a[href='/memory?path=MEMORY.md']")
	p.until(`location.pathname === "/memory"`)
	p.fill("textarea[name=text]", "- The team ships on Fridays")
	p.click("button[value=edit]")
	p.waitForText("The team ships on Fridays")
	p.visit("/agents/frontend/edit")
	p.until(`[...document.querySelectorAll(".known li")].some((e) => e.innerText.includes("deploy") && e.innerText.includes("needs approval"))`)
	p.click(".known a[href^='/skills/']")
	p.waitForText("What you would approve")
	p.click("button[value=approve]")
	p.until(`location.pathname === "/agents/frontend"`)
	p.until(`[...document.querySelectorAll(".known li")].some((e) => e.innerText.includes("deploy on"))`)
	p.visit("/agents/frontend/edit")
	p.until(`[...document.querySelectorAll("#preview .prompt")].some((e) => e.textContent.includes("ships on Fridays")) && [...document.querySelectorAll("#preview .prompt")].some((e) => e.textContent.includes("Ships the pages"))`)
	p.phone()
	p.until(`innerWidth === 390`)
	p.fits("the form of an agent on a phone")
	p.look("agent-edit-390")
	p.eval(`document.documentElement.dataset.theme = "dark"`)
	p.look("agent-edit-390-dark")
	p.desktop()
	p.look("agent-edit-1280-dark")
}

// A doc that somebody else saved meanwhile is not written over unseen.
func TestDocsOfTwoPeople(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	ops := h.app.Service.Operations()
	edit := func(text string) {
		t.Helper()
		if _, err := operations.EditMemory.Call(t.Context(), ops, h.owner, operations.MemoryEdit{Path: "MEMORY.md", Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	edit("one")
	p := h.signedIn()
	p.visit("/memory?path=MEMORY.md")
	p.click("main details summary")
	p.fill("textarea[name=text]", "mine")
	edit("theirs")
	p.expectError("409")
	p.click("button[value=edit]")
	p.waitForText("Somebody else saved this file after you opened it")
	p.until(`document.querySelector("textarea[name=text]").value === "mine"`)
	p.until(`[...document.querySelectorAll(".conflict td.code.del")].some((e) => e.textContent.includes("theirs"))`)
	p.click("button[value=edit]")
	p.until(`document.querySelector("pre.prompt")?.textContent.includes("mine")`)
}
