package webtest

import (
	"testing"

	"chorus/internal/operations"
)

// Rules are written beside what they mean and what they would have changed about commands that were really run; two people do not
// overwrite each other, and what was saved decides.
func TestPermissionsAreTriedAndSaved(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	work := h.session(operations.NewSession{Permissions: "open", Title: "What was done"})
	h.prompt(work, "call bash {\"command\":\"echo one\"}\nend\ncall bash {\"command\":\"echo one\"}\nend\ncall bash {\"command\":\"uname -a\"}\nend\nsay done")
	p := h.signedIn()
	p.desktop()
	p.visit("/permissions")
	p.waitForText("standard")
	p.look("permissions-1280")
	p.click("a[href='/permissions/standard']")
	p.waitForText("This profile cannot be changed here: it is built in")
	p.waitForText("reading files in the workspace") // in words
	p.click("a[href='/new-profile?from=standard']")
	p.write("input[name=name]", "careful")

	// A mistake is said beside the rules, and nothing that was typed is lost.
	p.fill("textarea[name=deny]", "tool:bash:(uname")
	p.until(`document.querySelector("#preview .bad")?.textContent.includes("missing")`)
	p.fill("textarea[name=deny]", "tool:bash:uname( .*)?")
	p.fill("textarea[name=allow]", "tool:bash:echo( .*)?\ntool:read:.*")
	p.until(`[...document.querySelectorAll("#preview .trials li")].some((e) => e.innerText.includes("asked → refused") && e.innerText.includes("uname -a"))`)
	p.until(`[...document.querySelectorAll("#preview .trials li")].some((e) => e.innerText.includes("asked → allowed") && e.innerText.includes("echo one") && e.innerText.includes("2 times"))`)
	p.waitForText("running “uname”, alone or with any arguments")
	p.look("permission-new-1280")
	p.phone()
	p.until(`innerWidth === 390`)
	p.fits("the form of a profile on a phone")
	p.look("permission-new-390")
	p.eval(`document.querySelector("#preview").scrollIntoView()`)
	p.look("permission-new-390-trial")
	p.desktop()
	p.click("button[value=save]")
	p.until(`location.pathname === "/permissions/careful"`)
	p.waitForText("Nothing would change")

	// What was saved decides.
	under := h.session(operations.NewSession{Permissions: "careful"})
	h.prompt(under, "call bash {\"command\":\"uname -s\"}\nend\ncall bash {\"command\":\"echo two\"}\nend\nsay over")
	lines, err := operations.ListAudit.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.AuditQuery{Session: under})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, line := range lines.Items {
		got[line.Action] = line.Decision
	}
	if got["tool:bash:uname -s"] != "deny" || got["tool:bash:echo two"] != "allow" {
		t.Errorf("%v", got)
	}

	// Somebody else is quicker.
	other := p.second()
	other.visit("/permissions/careful")
	other.fill("textarea[name=deny]", "tool:bash:(uname|curl)( .*)?")
	other.click("button[value=save]")
	other.waitForText("“curl”")
	p.fill("textarea[name=deny]", "tool:bash:(uname|wget)( .*)?")
	p.expectError("409")
	p.click("button[value=save]")
	p.waitForText("Somebody else saved this profile after you opened it")
	p.until(`[...document.querySelectorAll(".conflict td.code.del")].some((e) => e.textContent.includes("curl"))`)
	p.until(`document.querySelector("textarea[name=deny]").value.includes("wget")`)
	p.click("button[value=save]")
	p.until(`document.querySelector("#preview")?.innerText.includes("“wget”") && !document.querySelector(".conflict")`)
	p.eval(`document.documentElement.dataset.theme = "dark"`)
	p.look("permission-1280-dark")
	p.click("button[value=remove]")
	p.until(`location.pathname === "/permissions"`)
	p.until(`!document.body.innerText.includes("careful")`)
}
