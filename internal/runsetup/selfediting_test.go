package runsetup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/agents"
	"chorus/internal/app"
	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/gate"
	"chorus/internal/runsetup"
	"chorus/internal/store/audit"
	"chorus/internal/store/storetest"
)

// converse opens a session with an agent and gives a way to say something and see how the run
// that answers began, and every result in it.
func converse(t *testing.T, a *app.App, o runsetup.SessionOptions) func(text string) (chat.RunStarted, string) {
	t.Helper()
	s, err := a.Sessions.OpenSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	last := s.Start
	return func(text string) (chat.RunStarted, string) {
		t.Helper()
		if _, err := s.Send(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		var start chat.RunStarted
		var seen strings.Builder
		for item, err := range s.Watch(t.Context(), last) {
			if err != nil {
				t.Fatal(err)
			}
			if item.Event == nil {
				continue
			}
			last = item.Event.Seq
			switch e := item.Event.Body.(type) {
			case chat.RunStarted:
				start = e
			case chat.ToolRan:
				seen.WriteString(e.Blocks.Text() + "\n")
			case chat.RunEnded:
				fmt.Fprintf(&seen, "%s %s", e.Reason, e.Text)
				if e.Error != nil {
					seen.WriteString(e.Error.Message)
				}
				return start, seen.String()
			}
		}
		return start, seen.String()
	}
}

func TestSelfEditTakesEffectOnTheNextRun(t *testing.T) {
	t.Parallel()
	a, err := app.Open(t.Context(), app.Options{Home: storetest.FreshHome(t), Env: apptest.Env("USER", "tester")})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Gate.CreateAgent(t.Context(), agents.Agent{Name: "bo", Model: "demo/script", SystemPrompt: "You are the old one."}); err != nil {
		t.Fatal(err)
	}
	say := converse(t, a, runsetup.SessionOptions{Dir: a.Settings.Agents().Workspace("bo"), Agent: "bo", Yes: true})
	system := func(start chat.RunStarted) string {
		head, err := a.Setup.Head(start.Head)
		if err != nil {
			t.Fatal(err)
		}
		return head.System
	}
	start, seen := say("call self_edit_system_prompt {\"new_prompt\":\"You are the new one.\"}\ncall self_edit_docs {\"path\":\"house.md\",\"content\":\"Doors are blue.\"}\nend\nsay done")
	if !strings.Contains(system(start), "the old one") || strings.Count(seen, "It takes effect from the next run on.") != 2 {
		t.Fatalf("%s\n%s", system(start), seen)
	}
	start, _ = say("say who are you")
	if got := system(start); !strings.Contains(got, "the new one") || strings.Contains(got, "the old one") || !strings.Contains(got, `<doc name="house.md">`) || !strings.Contains(got, "Doors are blue.") {
		t.Errorf("the next run begins with %s", got)
	}
	if _, seen = say("call self_edit_permissions {\"profile\":\"locked\"}\ncall self_edit_model {\"model\":\"zzz\"}\nend\nsay done"); !strings.Contains(seen, "those of locked") || !strings.Contains(seen, "unknown model") {
		t.Errorf("%s", seen)
	}
	start, seen = say("call self_edit_model {\"model\":\"demo/echo\"}\nend\nsay done")
	if start.Settings.Profile != "locked" || !strings.Contains(seen, "no rule of profile locked allows tool:self_edit:model demo/echo") {
		t.Errorf("under %q: %s", start.Settings.Profile, seen)
	}
	if _, err := a.Gate.ConfigureAgent(t.Context(), "bo", "permissions", "standard"); err != nil {
		t.Fatal(err)
	}
	if _, seen = say("call self_edit_model {\"model\":\"EcHo\"}\ncall self_edit_docs {\"path\":\"house.md\",\"content\":\"\"}\nend\nsay done"); !strings.Contains(seen, "Your model is now demo/echo.") {
		t.Errorf("%s", seen)
	}
	start, _ = say("anything")
	if start.Model != "demo/echo" || strings.Contains(system(start), "house.md") {
		t.Errorf("the next run is on %s", start.Model)
	}
	audited(t, a, "tool:self_edit:system_prompt", `from "You are the old one." to "You are the new one."`, "local:tester")
	audited(t, a, "tool:self_edit:permissions locked", `from "standard" to "locked"`, "local:tester")
	audited(t, a, "tool:self_edit:docs house.md", `from "" to "Doors are blue."`, "local:tester")
}

func audited(t *testing.T, a *app.App, action, detail, by string) {
	t.Helper()
	lines, err := a.DB.AuditLog(context.Background(), audit.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if l.Decision == gate.Changed && l.Action == action && l.Detail == detail && l.Principal.For != nil && l.Principal.For.String() == by {
			return
		}
	}
	t.Errorf("no line tells of %s, %s, for %s: %+v", action, detail, by, lines)
}

func TestSelfEditIsForAgents(t *testing.T) {
	t.Parallel()
	a, err := app.Open(t.Context(), app.Options{Home: storetest.FreshHome(t), Env: apptest.Env("USER", "tester")})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, seen := converse(t, a, runsetup.SessionOptions{Dir: t.TempDir(), Model: "demo/script", Yes: true})("call self_edit_model {\"model\":\"demo/echo\"}\nend\nsay done"); !strings.Contains(seen, "self_edit_model") {
		t.Errorf("whoever was never made has nothing to change: %s", seen)
	}
	if _, err := a.Gate.CreateAgent(t.Context(), agents.Agent{Name: "bo", Model: "demo/script"}); err != nil {
		t.Fatal(err)
	}
	// Without --yes, and without anybody to ask, standard lets nothing but docs through.
	say := converse(t, a, runsetup.SessionOptions{Dir: a.Settings.Agents().Workspace("bo"), Agent: "bo"})
	if _, seen := say("call self_edit_docs {\"path\":\"a.md\",\"content\":\"x\"}\nend\nsay done"); !strings.Contains(seen, "is written") {
		t.Errorf("docs: %s", seen)
	}
	for _, call := range []string{`self_edit_system_prompt {"new_prompt":"x"}`, `self_edit_permissions {"profile":"locked"}`, `self_edit_model {"model":"demo/echo"}`} {
		if _, seen := say("call " + call + "\nend\nsay done"); !strings.Contains(seen, "must be asked for") {
			t.Errorf("%s: %s", call, seen)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(secret, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(a.Home.AgentDir("bo"), "docs", "link.md")); err != nil {
		t.Fatal(err)
	}
	_, seen := say("call self_edit_docs {\"path\":\"link.md\",\"content\":\"x\"}\nend\nsay done")
	if data, err := os.ReadFile(secret); err != nil || string(data) != "keep" {
		t.Errorf("a link led out: %q, %v, %s", data, err, seen)
	}
}
