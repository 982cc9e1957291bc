package webtest

import "testing"

// An MCP server is added on its page, tested, shown with why it failed, and taken out again.
func TestServers(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	p.visit("/servers")
	p.waitForText("There are none yet")
	p.write("input[name=name]", "broken")
	p.write("input[name=command]", "no-such-<b>program</b>")
	p.click(".form button")
	p.waitForText("no-such-<b>program</b>")
	p.waitForText("never")
	p.click("button[value=test]")
	p.until(`document.querySelector("table.list .bad")?.textContent.includes("no-such-")`)
	p.waitForText("failed")
	p.click("button[value=remove]")
	p.waitForText("There are none yet")
}
