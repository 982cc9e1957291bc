package webtest

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/operations"
	"chorus/internal/tool/mcp/oauthtest"
)

// An MCP server is added on its page, tested, shown with why it failed, and taken out again.
func TestServers(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p := h.signedIn()
	p.visit("/servers")
	p.waitForText("No servers yet")
	p.write("input[name=name]", "broken")
	p.write("input[name=command]", "no-such-<b>program</b>")
	p.click(".form button")
	p.waitForText("no-such-<b>program</b>")
	p.waitForText("never")
	p.click("button[value=test]")
	p.until(`document.querySelector("table.list .bad")?.textContent.includes("no-such-")`)
	p.waitForText("failed")
	p.click("button[value=remove]")
	p.waitForText("No servers yet")
}

// Somebody logs in to an MCP server from its page: once the browser comes back by itself, once what it came back with is
// written into the form.
func TestServerLogin(t *testing.T) {
	t.Parallel()
	far := oauthtest.New(sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, nil))
	t.Cleanup(far.Stop)
	h := newServer(t)
	if _, err := operations.AddMCPServer.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.NewMCPServer{Name: "far", URL: far.URL + "/mcp"}); err != nil {
		t.Fatal(err)
	}
	p := h.signedIn()
	p.visit("/servers")
	p.click("button[value=login]")
	p.until(`document.querySelector("h1").textContent === "Log in to far"`)
	p.eval(`document.querySelector("main a.button").target = "_self"`)
	p.click("main a.button")
	p.waitForText("Chorus is logged in to far")
	p.visit("/servers")
	p.click("button[value=logout]")
	p.until(`document.querySelector("button[value=login]") !== null`)
	p.click("button[value=login]")
	p.until(`document.querySelector("h1").textContent === "Log in to far"`)
	p.expectError("404 (Not Found)")
	p.write("input[name=redirect]", h.url+"/mcp-login?code=x&state=guessed")
	p.click(".form button")
	p.waitForText("No login is waiting for this")
}
