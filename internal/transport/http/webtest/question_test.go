package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/operations"
)

// shopServer is set for a process of these tests that is an MCP server.
const shopServer = "WEBTEST_SHOP"

// shopForm asks for a value of each kind.
const shopForm = `{"type":"object","required":["name","count","size"],"properties":{
	"name":{"type":"string","title":"Name","description":"Who it is for"},
	"count":{"type":"integer","title":"How many","minimum":1,"maximum":10},
	"mail":{"type":"string","title":"Mail","format":"email","maxLength":40},
	"weight":{"type":"number","title":"Weight"},
	"gift":{"type":"boolean","title":"Gift","default":true},
	"size":{"type":"string","title":"Size","enum":["S","M"],"enumNames":["small","medium"]},
	"extras":{"type":"array","title":"Extras","items":{"type":"string","enum":["ribbon","card"]}}}}`

// serveShop is an MCP server on stdin and stdout. Its tool order asks a question, and says what came back.
func serveShop() int {
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "order", Description: "Orders something."}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		got, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "What shall be ordered?", RequestedSchema: json.RawMessage(shopForm)})
		if err != nil {
			return nil, nil, err
		}
		content, err := json.Marshal(got.Content)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: got.Action + " " + string(content)}}}, nil, err
	})
	if s.Run(context.Background(), &sdk.StdioTransport{}) != nil {
		return 1
	}
	return 0
}

// inShop is a server whose agents can order.
func inShop(t *testing.T) *server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newServer(t, "sandbox: host", "permissions: open", "mcpServers:", fmt.Sprintf("  shop: {command: %q, env: {%s: yes}}", self, shopServer))
}

const (
	order = "call mcp__shop__order {}\nend\nsay it is over"
	sends = `.question button[value="approve"]`
)

// A question of an MCP server is a form with a field for each value: what is chosen is a menu, what is meant stands there, what must be given is
// marked, and what does not fit is said beside its field, with the rest kept.
func TestQuestionIsAForm(t *testing.T) {
	t.Parallel()
	h := inShop(t)
	p := h.signedIn()
	for _, where := range []string{"conversation", "/approvals", "without scripts"} {
		id := h.session(operations.NewSession{WorkspacePath: t.TempDir(), Permissions: "open"})
		p.visit("/s/" + id)
		p.say(order)
		p.until(`document.querySelector(".question form")`)
		switch where {
		case "/approvals":
			p.visit(where)
		case "without scripts":
			p.visit("/approvals")
			p.eval(`document.querySelector(".question form").classList.remove("verdict")`) // no script takes it
		}
		p.until(`document.querySelectorAll(".question .needed").length === 3`)
		form := p.text(`[...document.querySelectorAll(".question form :is(input:not([type=hidden]), select)")].map((f) => [f.localName, f.name, f.type, f.inputMode, f.value, f.required].join(" ")).join("\n")`)
		want := strings.Join([]string{"input field:count text numeric  true", "input field:name text   true", "select field:size select-one   true",
			"input field:extras checkbox  ribbon false", "input field:extras checkbox  card false", "select field:gift select-one  yes false", "input field:mail email   false", "input field:weight text decimal  false"}, "\n")
		if form != want {
			t.Errorf("%s: the form is\n%s\nnot\n%s", where, form, want)
		}
		if labels := p.text(`[...document.querySelectorAll(".question .field :is(input, select)")].filter((f) => !f.labels.length).map((f) => f.name).join()`); labels != "" {
			t.Errorf("without a label: %s", labels)
		}
		p.fill(`[name="field:name"]`, "Ada; of London")
		p.fill(`[name="field:count"]`, "many")
		p.expectError("422")
		p.look("question-" + strings.Trim(where, "/"))
		p.click(sends)
		p.until(`document.querySelectorAll(".question [role=alert]").length === 2`)
		if wrong := p.text(`[...document.querySelectorAll(".question [role=alert]")].map((e) => e.innerText).join("; ")`); wrong != `How many must be a whole number, not "many"; Size is missing` {
			t.Errorf("%s: wrong is %s", where, wrong)
		}
		p.until(`document.activeElement.name === "field:count"`)
		if about := p.text(`document.getElementById(document.activeElement.getAttribute("aria-describedby").split(" ")[0]).innerText`); !strings.Contains(about, "whole number") {
			t.Errorf("the field is described by %q", about)
		}
		if kept := p.text(`document.querySelector("[name='field:name']").value`); kept != "Ada; of London" {
			t.Errorf("%s: the name is %q now", where, kept)
		}
		p.look("question-wrong-" + strings.Trim(where, "/"))
		p.fill(`[name="field:count"]`, "70")
		p.fill(`[name="field:mail"]`, "ada")
		p.fill(`[name="field:size"]`, "M")
		p.expectError("422")
		p.click(sends)
		p.until(`[...document.querySelectorAll(".question [role=alert]")].map((e) => e.innerText).join("; ") === 'How many must be at most 10; Mail must be an email address, as ada@example.org, not "ada"'`)
		p.fill(`[name="field:count"]`, "7")
		p.fill(`[name="field:mail"]`, "ada@example.org")
		p.click(`.question input[value="card"]`)
		p.click(sends)
		p.until(`!document.querySelector(".question form")`)
		p.visit("/s/" + id)
		p.waitForAnswer("it is over")
		result := p.text(`document.querySelector("[id^=out-]").textContent`)
		if !strings.Contains(result, `accept {"count":7,"extras":["card"],"gift":true,"mail":"ada@example.org","name":"Ada; of London","size":"M"}`) {
			t.Errorf("%s: the server was told %s", where, result)
		}
		if said := p.text(`document.querySelector(".question .answer").innerText`); !strings.HasPrefix(said, "Answered by") {
			t.Errorf("the card says %q", said)
		}
	}
}

// A no is told to the server as one.
func TestQuestionIsDeclined(t *testing.T) {
	t.Parallel()
	h := inShop(t)
	p, _ := h.begin(operations.NewSession{WorkspacePath: t.TempDir(), Permissions: "open"})
	p.say(order)
	p.click(`.question button[value="deny"]`)
	p.waitForAnswer("it is over")
	if result := p.text(`document.querySelector("[id^=out-]").textContent`); !strings.Contains(result, "decline") {
		t.Errorf("the server was told %s", result)
	}
}

// While approvals come and go, the list of them leaves alone what somebody does in it: the text of a note, the focus, what is unfolded. An answer
// with a note takes its card away, and keeps the note of another.
func TestApprovalsKeepWhatSomebodyDoes(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	ask := func(command string) {
		t.Helper()
		h.requestApprovalIn(h.session(operations.NewSession{WorkspacePath: t.TempDir(), Permissions: "standard"}), command)
	}
	card := func(command string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".ask")].find((e) => e.querySelector(".command")?.innerText.includes(%q))`, command)
	}
	ask("touch first")
	ask("touch second")
	p := h.signedIn()
	p.visit("/approvals")
	p.until(`document.querySelectorAll(".ask").length === 2`)
	// The focus stays on a button, and what is unfolded stays so, when a card comes in front of theirs.
	p.eval(card("touch first") + `.querySelector("details").open = true`)
	p.eval(card("touch first") + `.querySelector("button.no").focus()`)
	ask("touch third")
	p.until(`document.querySelectorAll(".ask").length === 3`)
	if at := p.text(`document.activeElement.value + " " + document.activeElement.closest(".ask")?.querySelector(".command").innerText`); !strings.Contains(at, "deny") || !strings.Contains(at, "touch first") {
		t.Errorf("the focus is on %q", at)
	}
	if open := p.text(`[...document.querySelectorAll(".ask")].filter((e) => e.querySelector("details").open).map((e) => e.querySelector(".command").innerText).join("; ")`); strings.TrimSpace(open) != "touch first" {
		t.Errorf("unfolded are %q", open)
	}
	// So does the text of a note, with its cursor, while another card is answered with a note of its own.
	p.eval(card("touch first") + `.querySelector("[name=note]").id = "mine"`)
	p.write("#mine", "half a sent")
	ask("touch fourth")
	p.until(`document.querySelectorAll(".ask").length === 4`)
	p.eval(card("touch second") + `.querySelector("[name=note]").value = "because"`)
	p.eval(card("touch second") + `.querySelector("button.no").click()`)
	p.until(`document.querySelectorAll(".ask").length === 3 && !` + card("touch second"))
	if at := p.text(`document.activeElement.id + ": " + document.activeElement.value + " at " + document.activeElement.selectionStart`); at != "mine: half a sent at 11" {
		t.Errorf("what is written is %q", at)
	}
	p.eval(card("touch first") + `.querySelector("button.no").click()`)
	p.until(`document.querySelectorAll(".ask").length === 2`)
}
