package webtest

import "testing"

// Settings are in groups with what they mean; a value that cannot be taken is said beside its field, and what was typed stays.
func TestSettings(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	p.expectError("400") // a wrong value
	p.visit("/settings")
	p.waitForText("Rights and money")
	p.eval(`document.querySelectorAll("details.settinggroup").forEach((d) => (d.open = true))`)
	p.eval(`const f = document.querySelector('[id="maxIterations"] form, [id="maxSteps"] form, .setting form:has(input[type=number])'); f.value.type = "text"; f.value.value = "-7 <b>"; f.requestSubmit()`)
	p.until(`document.querySelector(".setting [role=alert]")?.textContent.length > 10 && document.querySelector(".setting [aria-invalid=true]")`)
	p.visit("/settings?show=changed")
	p.waitForText("Nothing was set")
	p.visit("/settings")
	p.eval(`const s = [...document.querySelectorAll(".setting form")].find((f) => f.value.tagName === "SELECT" && [...f.value.options].some((o) => o.value === "true")); window.key = s.key.value; s.value.value = "true"; s.requestSubmit()`)
	p.until(`location.hash.length > 1`)
	p.visit("/settings?show=changed")
	p.until(`document.querySelectorAll(".setting").length === 1`)
}
