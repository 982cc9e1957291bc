package webtest

import (
	"strings"
	"testing"

	"chorus/internal/operations"
)

// A hook is made with a form that says what is wrong and shows what it will do before it is kept; its steps are tried, it
// runs, its runs are looked at, and it is changed.
func TestHooks(t *testing.T) {
	t.Parallel()
	h := newServer(t, "model: demo/script", "prices:", "  demo/script: {input: 3, output: 15}")
	id := h.session(operations.NewSession{Title: "Where it is said"})
	p := h.signedIn()
	p.desktop()
	p.visit("/hooks")
	p.waitForText("No hooks yet")
	p.click("a[href='/hooks/new']")
	p.waitForText("Trigger")
	p.write("input[name=name]", "Broken build")
	p.write("input[name=when]", "every blue moon")
	p.write("textarea[name=commands]", "echo '<b>red</b>'; exit 3")
	p.click("input[name=skipOk]")
	p.write("textarea[name=prompt]", "say it is red because of {{step_0.exit_code}}")
	p.write("input[name=say]", id)
	p.click("button[value=preview]")
	p.waitForText("is not understood from")
	p.until(`document.querySelector("input[name=when]").getAttribute("aria-invalid") === "true"`)
	p.until(`document.querySelector("textarea[name=commands]").value === "echo '<b>red</b>'; exit 3"`) // nothing is lost
	p.eval(`document.querySelector("input[name=when]").value = ""`)
	p.write("input[name=when]", "every weekday at 9")
	p.click("button[value=preview]")
	p.waitForText("What it will do")
	p.until(`document.querySelectorAll(".ask time").length === 5`)
	p.waitForText("step_0: runs echo '<b>red</b>'; exit 3; if it succeeds, nothing more is done")
	p.waitForText("Saving the hook approves them")
	for _, theme := range []string{"light", "dark"} {
		p.eval(`document.documentElement.dataset.theme = "` + theme + `"`)
		p.phone()
		p.until(`innerWidth === 390`)
		p.fits("the form of a hook on a phone")
	}
	p.desktop()
	p.click("button[value=keep]")
	p.until(`location.pathname === "/hooks/broken-build"`)
	p.waitForText("No runs yet")

	p.click("button[value=test]")
	p.waitForText("Test result")
	p.waitForText("<b>red</b>")
	p.waitForText("say it is red because of 3")
	p.waitForText("No model was asked")
	p.visit("/hooks/broken-build")
	p.waitForText("No runs yet") // a test is no run
	p.click("button[value=fire]")
	p.until(`(() => { const r = new XMLHttpRequest(); r.open("GET", "/hooks/broken-build", false); r.send(); return r.responseText.includes("completed"); })()`)
	p.visit("/hooks/broken-build")
	p.waitForText("completed")
	p.click("a[href^='/hook-runs/']")
	p.waitForText("because of manual")
	p.waitForText("exit code 3")
	p.waitForText("Answer")
	p.waitForText("said in")
	p.phone()
	p.until(`innerWidth === 390`)
	p.fits("a run on a phone")
	p.desktop()

	// Changed, it asks for a new yes to what it runs.
	p.visit("/hooks/broken-build/edit")
	p.until(`document.querySelector("textarea[name=commands]").value.trim() === "echo '<b>red</b>'; exit 3"`)
	p.eval(`document.querySelector("textarea[name=commands]").value = "echo green"`)
	p.click("button[value=preview]")
	p.waitForText("step_0: runs echo green")
	p.click("button[value=keep]")
	p.until(`location.pathname === "/hooks/broken-build"`)
	p.click("button[value=test]")
	p.waitForText("It would end here: step_0: exit code 0")

	// The secret of a webhook is shown once.
	p.visit("/hooks/new")
	p.write("input[name=name]", "Deploys")
	p.click("input[value=webhook]")
	p.write("textarea[name=prompt]", "say {{event}}")
	p.click("button[value=preview]")
	p.waitForText("What it will do")
	p.click("button[value=keep]")
	p.waitForText("whsec_")
	p.visit("/hooks/deploys")
	p.waitForText("No runs yet")
	if strings.Contains(p.visibleText(), "whsec_") {
		t.Error("the secret is shown twice")
	}
	p.click("button[value=delete]")
	p.until(`location.pathname === "/hooks"`)
}
