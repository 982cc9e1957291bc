package webtest

import (
	"strings"
	"testing"

	"chorus/internal/operations"
)

// Commands are completed while somebody types, answered in the page, and confirmed with a button where something would be lost.
func TestTypedCommands(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{})
	p.expectError("400") // a command that does not exist
	const area = "#say textarea"
	p.write(area, "/mem")
	p.until(`[...document.querySelectorAll("#completions [role=option]")].map((o) => o.dataset.line).join() === "/memory "`)
	p.write(area, "\t") // takes the first
	p.until(`document.querySelector("#say textarea").value === "/memory "`)
	p.until(`document.querySelectorAll("#completions [role=option]").length === 7`)
	p.write(area, "sho")
	p.until(`document.querySelectorAll("#completions [role=option]").length === 1`)
	p.eval(`document.querySelector("#completions [role=option]").dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, cancelable: true }))`)
	p.until(`document.querySelector("#say textarea").value === "/memory show "`)
	p.until(`document.querySelector('#completions [data-line="/memory show global "]')`) // names of what the person may see
	p.phone()
	p.fits("the list of completions on a phone")
	p.desktop()
	p.eval(`document.querySelector("#say textarea").value = ""`)

	p.write(area, "/memory edit the team ships on <b>Fridays</b> add=yes\r")
	p.until(`document.querySelector("#say textarea").value.trim() === "" && document.getElementById("completions").hidden`)
	p.waitForText("has version 1")
	p.write(area, "/memory show\r")
	p.waitForText("the team ships on <b>Fridays</b>") // as text
	p.write(area, "/memory forget words=ships\r")
	p.waitForText("Only the lines that contain: ships")
	p.click("form.confirm .button")
	p.waitForText("is forgotten as you asked")
	p.until(`!document.querySelector("form.confirm")`)

	p.write(area, "/memroy show\r")
	p.waitForText("did you mean /memory?")
	p.until(`document.querySelector("#say textarea").value.trim() === "/memroy show"`) // what was typed is not lost
	p.eval(`document.querySelector("#say textarea").value = ""`)
	p.write(area, "/help\r")
	p.waitForText("Commands that agents run in the background")
	if p.number(`document.querySelectorAll(".said").length`) != 0 {
		t.Error("a command was said to the agent")
	}
	p.eval(`document.documentElement.dataset.theme = "dark"`)
	p.phone()
	p.write(area, "/schedule a")
	p.until(`document.querySelectorAll("#completions [role=option]").length === 1`)
	p.eval(`document.querySelector("#say textarea").value = ""`)
	p.write(area, "/mode review\r")
	p.waitForText("from the next message on: review")
	p.write(area, "/etc/passwd is a path and no command\r")
	p.waitForAnswer("is a path and no command")
	p.waitUntilIdle()

	p.write(area, "/notes set plan first the <i>tests</i>\r")
	p.waitForText("noted")
	p.write(area, "/notes\r")
	p.waitForText("plan: first the <i>tests</i>")
	p.write(area, "/notes get p")
	p.until(`document.querySelector('#completions [data-line="/notes get plan "]')`)
	p.eval(`document.querySelector("#say textarea").value = ""`)
	p.write(area, "/diff\r")
	p.expectError("409") // it works in no repository
	p.waitForText("is not in a git repository")
	p.eval(`(() => { const area = document.querySelector("#say textarea"); area.value = ""; area.dispatchEvent(new Event("input")) })()`) // or it is kept as a draft

	// The page is loaded anew: every answer stands where it stood, and what was confirmed is not asked again.
	order := `[...document.getElementById("log").children].map((e) => e.querySelector(".meta code")?.textContent ?? e.className).join("\n")`
	before := p.text(order)
	p.visit("/s/" + id)
	p.waitForText("plan: first the <i>tests</i>")
	if after := p.text(order); after != before || !strings.Contains(before, "/memory forget words=ships\n") || !strings.Contains(before, "/mode review\nsaid user") {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if p.number(`document.querySelectorAll("form.confirm").length`) != 0 {
		t.Error("what was confirmed is asked again")
	}
	// What was asked and not answered can still be confirmed.
	p.write(area, "/memory forget words=nothing\r")
	p.until(`document.querySelector("form.confirm")`)
	p.visit("/s/" + id)
	p.click("form.confirm .button")
	p.until(`!document.querySelector("form.confirm")`)
	// Another conversation has none of it, nor has whoever signs in next.
	p.visit("/s/" + h.session(operations.NewSession{}))
	p.waitForText("Tell the agent what to do")
	p.visit("/sign-in")
	p.visit("/s/" + id)
	p.waitForText("is a path and no command")
	if p.number(`document.querySelectorAll(".command").length`) != 0 {
		t.Error("answers outlive a sign-in")
	}

	// Without scripts a command has a page of its own.
	p.eval(`fetch("/s/` + id + `/say", { method: "POST", body: new URLSearchParams({ message: "/memory forget" }) }).then((r) => r.text()).then((t) => (window.plain = t))`)
	p.until(`window.plain?.includes('name="message" value="/memory forget --yes"') && window.plain.includes("Back to the conversation")`)
}
