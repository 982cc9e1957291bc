package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/agent"
	"chorus/internal/app"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/overrides"
	"chorus/internal/store/storetest"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// called is a tool that names what it touches, or nothing.
type called struct {
	name    string
	touches []tool.Access
}

func (c called) Spec() tool.Spec { return tool.Spec{Name: c.name} }

func (c called) Access([]byte) []tool.Access { return c.touches }

func (called) Run(context.Context, []byte) (tool.Result, error) { return tool.Result{}, nil }

// asked stores an approval of a call in a thread, as a run does.
func asked(t *testing.T, a *app.App, row journal.Thread, id string, q agent.ProposedCall) {
	t.Helper()
	facts := approval.Facts{Tool: q.Tool.Spec().Name, Args: q.Args, Dir: row.Dir, Declared: len(q.Touches) > 0}
	actions := []string{"tool:" + q.Tool.Spec().Name + ":" + string(q.Args)}
	if facts.Declared {
		actions = nil
	}
	for _, touch := range q.Touches {
		actions = append(actions, touch.Action())
		if touch.Git {
			facts.Git = append(facts.Git, touch.Action())
		}
	}
	if q.Ask != "" {
		facts.Each = q.Ask
	}
	store(t, a, row, &approval.Approval{ID: id, Thread: row.ID, Call: q.Call, Dir: row.Dir, Bound: facts.Encode(), Actions: actions, AskedBy: a.Me()})
}

// store creates a thread with an approval that waits.
func store(t *testing.T, a *app.App, row journal.Thread, q *approval.Approval) {
	t.Helper()
	if _, err := a.DB.Commit(t.Context(), journal.Commit{Thread: row.ID, Create: &row}); err != nil {
		t.Fatal(err)
	}
	taken, err := a.DB.Take(t.Context(), row.ID)
	if err != nil {
		t.Fatal(err)
	}
	q.State = approval.Open
	if _, err := a.DB.Commit(t.Context(), journal.Commit{Thread: row.ID, Epoch: taken.Epoch, Status: chat.Waiting,
		Events: []chat.Event{{Body: chat.ApprovalAsked{ID: q.ID, Call: "c"}}}, Approvals: []approval.Change{{New: q}}}); err != nil {
		t.Fatal(err)
	}
}

// configure writes a file of a home's configuration.
func configure(t *testing.T, home, name, text string) {
	t.Helper()
	path := filepath.Join(home, "config", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// thread is a session in a terminal.
func thread(t *testing.T, name string) journal.Thread {
	t.Helper()
	id, err := chat.NewThreadID("cli", "place", name, "helper")
	if err != nil {
		t.Fatal(err)
	}
	return journal.Thread{ID: id, Agent: "helper", Place: "place", Dir: "/repo"}
}

// Each rule that is offered for an approval lets the call through in the next run; where none is offered, the reason is that of the call.
func TestOfferedRulesLetTheCallThrough(t *testing.T) {
	t.Parallel()
	home := storetest.FreshHome(t)
	shared := "permissions: some\nprofiles:\n  some: {allow: [\"tool:bash:ls.*\"], ask: [\".*\"], deny: [\"tool:bash:git push.*\", \"tool:bash:rm .*\"]}\n"
	configure(t, home, "shared.yaml", shared)
	a, _ := keeper(t, home)
	call := func(args, name, why string, touches ...tool.Access) agent.ProposedCall {
		return agent.ProposedCall{Call: chat.ToolUse{ID: "c", Name: name, Args: []byte(args)}, Tool: called{name, touches}, Args: json.RawMessage(args), Touches: touches, Ask: why}
	}
	shell := func(command string) agent.ProposedCall {
		return call(`{}`, "bash", "", tool.Access{Tool: "bash", Detail: command, Command: command})
	}
	for name, c := range map[string]struct {
		call  agent.ProposedCall
		never string // "": rules are offered
	}{
		"a command":            {shell("make && ls -l"), ""},
		"a path written oddly": {shell("echo a > x/../b"), ""},
		"a file":               {call(`{}`, "write", "", tool.Access{Tool: "write", Detail: "a/b"}), ""},
		"a file of git":        {call(`{}`, "write", "", tool.Access{Tool: "write", Detail: ".git/hooks/x", Git: true}), ""},
		"arguments":            {call(`{"b": 1, "a": [2.0]}`, "mcp__x__y", ""), ""},
		"arguments as a detail": {
			call(`{"b": 1, "a": 2}`, "system_drain", "", tool.Access{Tool: "system_drain", Detail: `{"b": 1, "a": 2}`}), ""},
		"several":                  {call(`{}`, "copy", "", tool.Access{Tool: "read", Detail: "a"}, tool.Access{Tool: "write", Detail: "b"}), ""},
		"a file that git may read": {call(`{}`, "write", "", tool.Access{Tool: "write", Detail: "srv/config", Git: true}), "which programs git starts"},
		"what cannot be read":      {shell(`eval "$X"`), "eval runs a text"},
		"what may be denied":       {shell("nyc git push"), "running “git push” and whatever follows"},
		"what is denied":           {shell("rm x"), "it is refused, and no rule that you keep changes that: a rule denies running “rm ” and whatever follows"},
		"a catastrophe":            {shell("rm -rf /"), "removing /"},
		"what a hook asks for":     {call(`{}`, "bash", "a tool hook wants it approved", tool.Access{Tool: "bash", Detail: "make", Command: "make"}), "a tool hook wants it approved"},
	} {
		t.Run(name, func(t *testing.T) {
			row, id := thread(t, strings.ReplaceAll(name, " ", "-")), "01"+strings.ReplaceAll(name, " ", "-")
			asked(t, a, row, id, c.call)
			offer, err := a.Gate.Propose(t.Context(), id, a.Me())
			if err != nil {
				t.Fatal(err)
			}
			if (len(offer.Steps) > 0) != (offer.Never == "") || (c.never == "") != (offer.Never == "") || !strings.Contains(offer.Never, c.never) {
				t.Fatalf("%d steps, and %q; want %q", len(offer.Steps), offer.Never, c.never)
			}
			letThrough(t, a, row, c.call, offer.Steps)
		})
	}
	question := thread(t, "question")
	store(t, a, question, &approval.Approval{ID: "01question", Thread: question.ID, Actions: []string{approval.QuestionAction("MCP server x")}, AskedBy: a.Me()})
	if offer, err := a.Gate.Propose(t.Context(), "01question", a.Me()); err != nil || offer.Never != "it is a question, and no rule can answer it" {
		t.Errorf("%+v, %v", offer, err)
	}
}

// letThrough tries that the next run asks about a call without any of some rules, and not with one.
func letThrough(t *testing.T, a *app.App, row journal.Thread, q agent.ProposedCall, steps []approval.Step) {
	t.Helper()
	for _, step := range steps {
		if before := ruling(t, a, row, q); before.Verdict != approval.Pending {
			t.Fatalf("without a rule it is %s", before.Verdict)
		}
		entry := makes("")
		entry.Rules = step.Rules
		if err := a.Gate.AddAllowed(t.Context(), entry, a.Me()); err != nil {
			t.Fatal(err)
		}
		if after := ruling(t, a, row, q); after.Verdict != approval.Allow {
			t.Errorf("with %q it is %s: %s", step.Rules, after.Verdict, after.Reason)
		}
		if _, err := a.Gate.RemoveAllowed(t.Context(), []string{entry.Name()}); err != nil {
			t.Fatal(err)
		}
	}
}

// ruling is what the gate of the next run says about a call.
func ruling(t *testing.T, a *app.App, row journal.Thread, q agent.ProposedCall) approval.Ruling {
	t.Helper()
	bot, err := a.Settings.BotFor(row)
	if err != nil {
		t.Fatal(err)
	}
	g := a.Gate.For(row, bot, engine.Work{Seq: 1, Senders: []transcript.Sender{{Principal: a.Me(), Seq: 1}}})
	g.Choice.Set(func(v *overrides.Values) { v.CanAsk = true })
	return g.Judge(q, a.Me())
}

// An agent that works for another is judged by the rules of both, and so is a rule that is offered for it.
func TestOfferedUnderAnotherAgent(t *testing.T) {
	t.Parallel()
	home := storetest.FreshHome(t)
	for name, text := range map[string]string{"shared.yaml": "permissions: open\n", "bots/boss.yaml": "permissions: asks\nprofiles:\n  asks: {ask: [\".*\"]}\n"} {
		configure(t, home, name, text)
	}
	a, _ := keeper(t, home)
	above, row := thread(t, "above"), thread(t, "below")
	above.Agent = "boss"
	var err error
	if above.ID, err = chat.NewThreadID("cli", "place", "above", "boss"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.DB.Commit(t.Context(), journal.Commit{Thread: above.ID, Create: &above}); err != nil {
		t.Fatal(err)
	}
	row.Parent.Thread = above.ID
	q := agent.ProposedCall{Call: chat.ToolUse{ID: "c", Name: "bash"}, Tool: called{"bash", nil}, Args: []byte(`{}`), Touches: []tool.Access{{Tool: "bash", Detail: "make", Command: "make"}}}
	asked(t, a, row, "01below", q)
	offer, err := a.Gate.Propose(t.Context(), "01below", a.Me())
	if err != nil || len(offer.Steps) == 0 {
		t.Fatalf("%+v, %v", offer, err)
	}
	letThrough(t, a, row, q, offer.Steps)
}
