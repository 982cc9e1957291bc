package gate

import (
	"testing"

	"chorus/internal/agent"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/overrides"
	"chorus/internal/permit"
	"chorus/internal/settings"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// named is a tool of some name that touches the whole workspace.
type named struct {
	toucher
	name string
}

func (n named) Spec() tool.Spec { return tool.Spec{Name: n.name} }

func TestSearchingToolsHonourReadRules(t *testing.T) {
	t.Parallel()
	bot := &config.Bot{Permissions: "mine", Profiles: map[string]config.Profile{"mine": {
		Allow: []string{`tool:(?:search_files|list_files|git|upload):.*`, `tool:read:(?:src/.*|a\.md)`},
		Ask:   []string{`tool:read:private/.*`},
		Deny:  []string{`tool:read:(?:.*/)?\.env`, `tool:list_files:hidden/.*`, `tool:search_files:logs/.*`},
	}}}
	for _, c := range []struct {
		tool string
		yes  bool
		path string
		want bool
	}{
		{"search_files", false, "src/a.go", false},
		{"search_files", false, "other.md", false}, // no rule says anything of it: the call was allowed
		{"search_files", false, ".env", true},
		{"search_files", false, "sub/.env", true},
		{"search_files", false, "logs/x", true},
		{"search_files", false, "private/x", true},
		{"search_files", true, "private/x", false}, // every question is answered yes
		{"search_files", true, ".env", true},
		{"list_files", false, ".env", false}, // its name is no secret
		{"list_files", false, "hidden/x", true},
		{"git_diff", false, ".env", true},
		{"git_commit", false, ".env", true},
		{"upload", false, ".env", true},
		{"upload", false, "src/a.go", false},
	} {
		touch := toucher{{Tool: c.tool, Detail: "."}}
		q := agent.ProposedCall{Tool: named{touch, c.tool}, Touches: touch, Senders: []transcript.Sender{said(ada, chat.Terms{Yes: c.yes})}}
		ruling := newGate(bot, true).Judge(q, chat.Principal{})
		if ruling.Verdict != approval.Allow || ruling.Hides == nil {
			t.Fatalf("%s: %+v", c.tool, ruling)
		}
		if got := ruling.Hides(c.path); got != c.want {
			t.Errorf("%s hides %s: %t, want %t (yes %t)", c.tool, c.path, got, c.want, c.yes)
		}
	}
	touch := toucher{{Tool: "search_files", Detail: "."}}
	q := agent.ProposedCall{Tool: named{touch, "search_files"}, Touches: touch, Senders: []transcript.Sender{said(ada, chat.Terms{})}}
	if ruling := newGate(&config.Bot{Permissions: "standard"}, true).Judge(q, chat.Principal{}); ruling.Hides != nil {
		t.Error("a built-in profile hides files, which makes searches slow for nothing")
	}
}

// Under open a file below .git is written unasked only where commands run on the host as well.
func TestOpenAsksForGitInASandbox(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sandbox, asked, profile string
		want                    approval.Verdict
	}{
		{"host", "", "", approval.Allow},
		{"auto", "", "", approval.Pending},
		{"bwrap", "", "", approval.Pending},
		{"host", "bwrap", "", approval.Pending},
		{"bwrap", "host", "", approval.Allow},
		{"auto", "", "none", approval.Allow},
	} {
		bot := &config.Bot{Permissions: "open", Sandbox: c.sandbox, Profiles: map[string]config.Profile{"open": {Sandbox: c.profile}}}
		g := &Judge{Limits: LimitsOf(bot, journal.Thread{}, func(name string) (*permit.Profile, error) { return settings.Profile(bot, name) }),
			Choice: withOverrides(overrides.Values{CanAsk: true}), Work: engine.Work{Seq: 1, Terms: chat.Terms{Sandbox: c.asked}}}
		g.setSandboxed(bot)
		q := question([]transcript.Sender{said(ada, chat.Terms{})}, tool.Access{Tool: "write", Detail: ".git/config"})
		if got := g.Judge(q, chat.Principal{}); got.Verdict != c.want {
			t.Errorf("%+v: %s %s", c, got.Verdict, got.Reason)
		}
	}
}
