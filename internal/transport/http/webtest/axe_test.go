package webtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"

	"chorus/internal/npmtest"
	"chorus/internal/operations"
)

// axe finds nothing to complain about on any page, in both themes: labels, names, roles, contrast, order of headings.
func TestAxe(t *testing.T) {
	t.Parallel()
	library, err := os.ReadFile(filepath.Join(npmtest.Install(t, "axe-core@4.14.0"), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	h := inShop(t)
	ops := h.app.Service.Operations()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "greet.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(operations.EditMemory.Call(t.Context(), ops, h.owner, operations.MemoryEdit{Path: "global", Text: "- the team ships on Fridays"}))
	must(operations.CreateProject.Call(t.Context(), ops, h.owner, operations.NewProject{Name: "Site"}))
	task, err := operations.CreateTask.Call(t.Context(), ops, h.owner, operations.NewTask{Project: "site", Title: "Write the page", Description: "All of it"})
	must(task, err)
	must(operations.SaveProfile.Call(t.Context(), ops, h.owner, operations.ProfileEdit{Name: "careful", Allow: []string{"tool:read:.*"}, Deny: []string{"tool:bash:curl( .*)?"}}))
	must(operations.CreateAgent.Call(t.Context(), ops, h.owner, operations.NewAgent{Name: "helper", SystemPrompt: "You help.", Tools: "read"}))
	h.file("skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Ships it\n---\nShip.\n")
	talk := h.session(operations.NewSession{WorkspacePath: work, Permissions: "open"})
	h.prompt(talk, "think first\ncall read {\"path\":\"greet.txt\"}\nend\ncall edit {\"path\":\"greet.txt\",\"old_string\":\"two\",\"new_string\":\"2\"}\nend\nsay # Done\\n\\n| a | b |\\n|---|--:|\\n| `x` | 1 |\\n\\n```go\\nfunc x() {} // it\\n```")
	failed := h.session(operations.NewSession{})
	h.prompt(failed, "fail refused")
	asks := h.session(operations.NewSession{Permissions: "standard"})
	h.requestApprovalIn(asks, "cd src && touch x && rm -rf build")
	shared, err := operations.CreateShare.Call(t.Context(), ops, h.owner, operations.NewShare{ID: talk})
	must(shared, err)
	p := h.signedIn()
	question := h.session(operations.NewSession{WorkspacePath: t.TempDir(), Permissions: "open"})
	p.visit("/s/" + question)
	p.say(order)
	p.until(`document.querySelector(".question form")`)
	p.visit("/skills")
	skill := p.text(`document.querySelector("table.list a").getAttribute("href")`)
	p.visit("/approvals")
	always := p.text(`document.querySelector("a.always").getAttribute("href")`)
	paths := []string{"/", "/new", "/s/" + talk, "/s/" + failed, "/s/" + asks, "/s/" + question, "/s/" + talk + "/journal", "/s/" + talk + "/runs/9999", "/s/" + talk + "?diff=split", "/approvals", always, "/work", "/work/" + task.ID, "/projects", "/projects/site", "/projects/site/graph", "/workers",
		"/agents", "/agents/chorus", "/new-agent", "/agents/helper/edit", "/schedules", "/hooks", "/hooks/new", "/processes", "/skills", skill, "/servers", "/memory", "/memory?path=MEMORY.md", "/costs", "/audit",
		"/permissions", "/permissions/standard", "/permissions/careful", "/new-profile", "/s/" + talk + "/share", "/s/" + talk + "/delete", "/search?listing=deleted", shared.Path, "/settings", "/search", "/search?q=Done", "/doctor"}
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: string(library)}) // sent once, not with each page
	for _, path := range paths {
		p.visit(path)
		p.until(`document.readyState === "complete"`)
		p.eval(`document.querySelectorAll("main details").forEach((d) => (d.open = true))`) // what is behind a click is looked at too
		for _, look := range []struct{ theme, width, rules string }{
			{"light", "wide", axeRules},
			{"dark", "wide", `"color-contrast", "link-in-text-block"`}, // those of them that look at colours
			{"dark", "phone", axeRules},                                // other parts are shown there, and tables as cards
		} {
			p.theme(look.theme)
			if look.width == "phone" {
				p.phone()
				p.until(`innerWidth === 390`)
			}
			found := value[[]string](p, `axe.run(document, { runOnly: [`+look.rules+`] }).then((r) =>
				r.violations.map((v) => v.id + ": " + v.help + "\n    " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + (n.any[0]?.message ? " (" + n.any[0].message + ")" : "")).join("\n    ")))`)
			if len(found) > 0 {
				t.Errorf("%s (%s, %s): %d violations\n  %s", path, look.theme, look.width, len(found), strings.Join(found, "\n  "))
			}
		}
		p.desktop()
	}
}

const axeRules = `"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"`

// requestApprovalIn has the agent of a session ask for a command.
func (h *server) requestApprovalIn(id, command string) {
	h.Helper()
	if _, err := operations.Say.Call(h.Context(), h.app.Service.Operations(), h.owner, operations.Message{ID: id, Message: fmt.Sprintf("call bash {\"command\":%q}\nend\nsay done", command)}); err != nil {
		h.Fatal(err)
	}
}
