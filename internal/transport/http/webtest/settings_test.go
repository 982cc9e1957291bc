package webtest

import (
	"fmt"
	"strings"
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// set types a value into the field of a setting and sends it.
func (t *tab) set(key, text string) {
	t.Helper()
	t.eval(fmt.Sprintf(`const box = document.getElementById(%q); box.closest("details").open = true; box.scrollIntoView({ block: "center" })`, key))
	t.fill(fmt.Sprintf(`[id="%s"] [name=value]`, key), text)
	t.click(fmt.Sprintf(`[id="%s"] button`, key))
}

// Settings are in groups with what they mean, each typed into what suits it; a value that cannot be taken is said beside its field, and what
// was typed stays. What was set can be looked at alone, also while it is changed.
func TestSettings(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	held := func(key string) string {
		t.Helper()
		list, err := operations.ListSettings.Call(t.Context(), h.app.Service.Operations(), h.owner, operation.None{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Items {
			if s.Key == key {
				return s.Value
			}
		}
		return ""
	}
	p := h.signedIn()
	p.desktop()
	p.expectError("400") // a wrong value
	p.visit("/settings")
	if groups := p.number(`document.querySelectorAll("details.settinggroup h3").length`); groups < 6 {
		t.Errorf("%v groups", groups)
	}
	if bare := p.text(`[...document.querySelectorAll(".setting")].filter((e) => !(e.querySelector("dd .meta")?.textContent.trim().length > 10)).map((e) => e.id).join()`); bare != "" {
		t.Errorf("nothing says what these are: %s", bare)
	}
	if raw := p.text(`[...document.querySelectorAll(".setting")].filter((e) => { const label = e.querySelector("dt b").textContent.trim(), field = e.querySelector("[name=value]");
		return label.length < 4 || label === e.id || e.querySelector("dt code").textContent !== e.id || field && field.ariaLabel !== label }).map((e) => e.id).join()`); raw != "" {
		t.Errorf("these have no name for people with their key beside it: %s", raw)
	}
	kinds := p.text(`["maxTokens", "temperature", "promptCaching", "mode", "systemPrompt", "workspaces"].map((k) => { const f = document.getElementById(k).querySelector("[name=value]"); return f.type + (f.step ?? "") }).join()`)
	if kinds != "number1,numberany,select-one,select-one,textarea,textarea" {
		t.Errorf("they are typed into %s", kinds)
	}
	p.until(`document.getElementById("timeouts.toolMs").textContent.includes("15 minutes")`) // nobody reads 900000

	// What cannot be taken.
	p.eval(`document.getElementById("maxTokens").querySelector("[name=value]").type = "text"`)
	p.set("maxTokens", "-7 <b>")
	p.until(`document.querySelector("[id=maxTokens] [role=alert]")?.checkVisibility() && document.activeElement.getAttribute("aria-invalid") === "true"`)
	if said := p.text(`document.getElementById(document.activeElement.getAttribute("aria-describedby")).innerText`); !strings.Contains(said, "maxTokens") || !strings.Contains(said, "-7 <b>") {
		t.Errorf("%q", said)
	}
	if kept := p.text(`document.activeElement.value`); kept != "-7 <b>" {
		t.Errorf("what was typed is %q now", kept)
	}
	if open := p.text(`[...document.querySelectorAll("details.settinggroup[open] h3")].map((e) => e.innerText).join()`); open != "The model" {
		t.Errorf("open: %s", open)
	}
	p.look("settings-wrong")
	p.visit("/settings?show=changed")
	p.waitForText("Nothing was set")

	// What is set is shown where it was set.
	p.visit("/settings")
	p.set("maxTokens", "900")
	p.until(`location.hash === "#maxTokens" && document.querySelector("[id=maxTokens] .tag")?.checkVisibility()`)
	p.set("systemPrompt", "You are brief.\nYou are kind.")
	p.until(`location.hash === "#systemPrompt" && document.querySelector("[id=systemPrompt] textarea").value.includes("kind")`)
	if got := held("systemPrompt"); got != "You are brief.\nYou are kind." {
		t.Errorf("%q", got)
	}
	p.visit("/settings?show=changed")
	p.until(`document.querySelectorAll(".setting").length === 2 && document.querySelector("[id=maxTokens]").checkVisibility()`)
	p.look("settings-changed")
	p.set("maxTokens", "-1")
	p.until(`document.querySelector("[id=maxTokens] [role=alert]") && document.querySelectorAll(".setting").length === 2`)
	p.set("maxTokens", "800")
	p.until(`location.search === "?show=changed" && document.querySelector("[id=maxTokens] [name=value]").value === "800" && !document.querySelector("[role=alert]")`)
	p.set("maxTokens", "")
	p.until(`document.querySelectorAll(".setting").length === 1`)

	// A list has an entry a line.
	one, two := t.TempDir(), t.TempDir()
	p.visit("/settings")
	p.set("workspaces", one+"\n"+two+"\n")
	p.until(fmt.Sprintf(`location.hash === "#workspaces" && document.querySelector("[id=workspaces] textarea").value === %q`, one+"\n"+two))
	if got := held("workspaces"); got != fmt.Sprintf("[%q,%q]", one, two) {
		t.Errorf("%s", got)
	}
	p.phone()
	p.until(`innerWidth === 390`)
	p.fits("the settings")
	p.showsCards("the settings")
	p.look("settings-390")
}

// A token for nothing is not made: the form says so and keeps what was typed. What is not there is said in a sentence.
func TestWhatDidNotWorkIsSaid(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	p.visit("/settings")
	p.fill(`#new-token [name=name]`, "laptop")
	p.expectError("400")
	p.click(`#new-token button`)
	p.until(`document.querySelector("#new-token + [role=alert]")?.innerText .trim() === "Choose at least one scope."`)
	if kept := p.text(`document.querySelector("#new-token [name=name]").value`); kept != "laptop" {
		t.Errorf("the name is %q now", kept)
	}
	p.click(`#new-token [value=read]`)
	p.click(`#new-token button`)
	p.waitForText("Copy it now")
	p.expectError("404")
	p.visit("/s/nothing")
	p.waitForText(`There is no session "nothing".`)
	p.visit("/nowhere")
	p.waitForText("There is no page at this address.")
	if heading := p.text(`document.querySelector("h1").innerText`); heading != "Not found" {
		t.Errorf("the heading is %q", heading)
	}
}
