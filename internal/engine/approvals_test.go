package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/tool"
)

var bob = chat.Principal{Kind: chat.LocalUser, ID: "bob"}

// commandTool is a tool whose calls are commands.
type commandTool struct {
	tool.Tool
	command string
}

func (c commandTool) Access([]byte) []tool.Access {
	return []tool.Access{{Tool: "act", Detail: c.command, Command: c.command}}
}

// asked says something that needs a yes and waits for the n-th question.
func (r *rig) asked(n int) approval.Approval {
	r.t.Helper()
	events := r.until(func(ev chat.Event) bool {
		if is[chat.ApprovalAsked](ev) {
			n--
		}
		return n == 0
	})
	all := bodies[chat.ApprovalAsked](events)
	a, err := r.db.Approval(context.Background(), all[len(all)-1].ID)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func asking(r *rig, a engine.Asking) {
	r.close() // the one before may still look at how it asks
	r.asking, r.gate = a, ask
	r.open()
}

func TestTwoPeopleMustSayYes(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	asking(r, engine.Asking{Who: "two"})
	ctx := context.Background()
	r.say("!call act {}\n!---\n!say after")
	a := r.asked(1)
	if a.Payer.String() != "local:ada" || a.AskedBy.String() != "local:ada" {
		t.Fatalf("%+v", a)
	}
	robot := chat.Principal{Kind: chat.OtherAgent, ID: "helper"}
	if err := r.engine.Answer(ctx, a.ID, robot, true, ""); !errors.Is(err, approval.ErrMayNot) {
		t.Fatalf("the agent itself: %v", err)
	}
	if err := r.engine.Answer(ctx, a.ID, ada, true, "fine by me"); err != nil {
		t.Fatal(err)
	}
	if err := r.engine.Answer(ctx, a.ID, ada, true, ""); !errors.Is(err, approval.ErrMayNot) || !strings.Contains(err.Error(), "another person") {
		t.Fatalf("the same person: %v", err)
	}
	r.restart() // the first yes outlives the process
	if now, err := r.db.Approval(ctx, a.ID); err != nil || now.State != approval.Open || len(now.Votes) != 1 {
		t.Fatalf("%+v %v", now, err)
	}
	if err := r.engine.Answer(ctx, a.ID, bob, true, ""); err != nil {
		t.Fatal(err)
	}
	events := r.untilEnds(1)
	if ran := bodies[chat.ToolRan](events); len(ran) != 1 || ran[0].Outcome != chat.Ran {
		t.Fatal(show(events))
	}
	if got := bodies[chat.ApprovalAnswered](events); len(got) != 1 || got[0].By != "local:ada and local:bob" {
		t.Fatal(show(events))
	}
	if got := bodies[chat.ApprovalNoted](events); len(got) != 1 || got[0].What != chat.FirstYes || got[0].Note != "fine by me" {
		t.Fatal(show(events))
	}
	err := r.engine.Answer(ctx, a.ID, bob, false, "")
	if !errors.Is(err, journal.ErrSettled) || !strings.Contains(err.Error(), "approved by local:ada and local:bob at ") {
		t.Fatalf("too late: %v", err)
	}
}

func TestOneNoEndsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	asking(r, engine.Asking{Who: "two"})
	r.say("!call act {}\n!---\n!say {{last}}")
	a := r.asked(1)
	for i, ok := range []bool{true, false} {
		if err := r.engine.Answer(context.Background(), a.ID, []chat.Principal{ada, bob}[i], ok, "too early"); err != nil {
			t.Fatal(err)
		}
	}
	if got := lastText(r.untilEnds(1)); got != "denied by local:bob: too early" {
		t.Fatal(got)
	}
	lines, err := r.db.AuditLog(context.Background(), storeAll)
	if err != nil || len(lines) != 1 || lines[0].Decision != "ask_denied" || lines[0].Detail != "by local:bob" || lines[0].Rule != "tool:act:.*" ||
		!strings.HasPrefix(lines[0].Action, "tool:act:") {
		t.Fatalf("%+v %v", lines, err)
	}
}

// Two people, each the first of two as far as they know: both yeses count.
func TestTwoYesesAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	asking(r, engine.Asking{Who: "two"})
	r.say("!call act {}\n!---\n!say after")
	a := r.asked(1)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, who := range []chat.Principal{ada, bob} {
		wg.Go(func() { errs[i] = r.engine.Answer(context.Background(), a.ID, who, true, "") })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if ran := bodies[chat.ToolRan](r.untilEnds(1)); ran[0].Outcome != chat.Ran {
		t.Fatalf("%+v", ran)
	}
}

func TestChangedFactsAskAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, commandTool{echo(false), "sh build.sh"})
	script := filepath.Join(r.dir, "build.sh")
	write := func(text string) {
		if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("make")
	asking(r, engine.Asking{Env: []string{"PATH", "HOME"}})
	r.say("!call act {}\n!---\n!say after")
	a := r.asked(1)
	if !strings.Contains(string(a.Bound), `"env":["HOME","PATH"]`) || !strings.Contains(string(a.Bound), `"build.sh":"`) || a.Again != "" {
		t.Fatalf("%s", a.Bound)
	}
	write("make && rm -rf .")
	yes := func(a approval.Approval) {
		if err := r.engine.Answer(context.Background(), a.ID, ada, true, ""); err != nil {
			t.Fatal(err)
		}
	}
	yes(a)
	b := r.asked(2)
	if b.ID == a.ID || b.Again != "build.sh has changed" || b.Reason != "asked again: build.sh has changed" {
		t.Fatalf("%+v", b)
	}
	// A process with other variables goes on with it.
	asking(r, engine.Asking{Env: []string{"PATH", "HOME", "LD_PRELOAD"}})
	yes(b)
	c := r.asked(3)
	if c.Again != "it would get more variables: LD_PRELOAD" {
		t.Fatalf("%+v", c)
	}
	yes(c)
	events := r.untilEnds(1)
	if ran := bodies[chat.ToolRan](events); len(ran) != 1 || ran[0].Outcome != chat.Ran {
		t.Fatal(show(events))
	}
}

// However a command spells the file that it runs, a yes is for what the file held then.
func TestSwappedFilesAskAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, file, again string }{
		{"sh b*.sh", "build.sh", "build.sh has changed"},
		{"sh b*.sh", "before.sh", "before.sh has appeared"}, // it would be run in place of the other
		{"sh {build,}.sh", "build.sh", "build.sh has changed"},
		{"sh $'build.sh'", "build.sh", "build.sh has changed"},
		{`sh "$PWD/build.sh"`, "build.sh", "build.sh has changed"},
		{"cd sub && ./run", "sub/run", "sub/run has changed"},
		{"x=build; sh ${x}.sh", "build.sh", "build.sh has changed"},
		{"bash -c 'source ./b*.sh'", "build.sh", "build.sh has changed"},
		{"make", "Makefile", "Makefile has changed"},
		{"make", "GNUmakefile", "GNUmakefile has appeared"},
		{"npm test", "package.json", "package.json has changed"},
	} {
		t.Run(c.command, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, commandTool{echo(false), c.command})
			if err := os.Mkdir(filepath.Join(r.dir, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"build.sh", "sub/run", "Makefile", "package.json"} {
				write(name, "old")
			}
			asking(r, engine.Asking{})
			r.say("!call act {}\n!---\n!say after")
			a := r.asked(1)
			write(c.file, "swapped")
			if err := r.engine.Answer(context.Background(), a.ID, ada, true, ""); err != nil {
				t.Fatal(err)
			}
			b := r.asked(2)
			if b.Again != c.again {
				t.Fatalf("asked again since %q, bound %s", b.Again, b.Bound)
			}
			if err := r.engine.Answer(context.Background(), b.ID, ada, true, ""); err != nil {
				t.Fatal(err)
			}
			if ran := bodies[chat.ToolRan](r.untilEnds(1)); ran[0].Outcome != chat.Ran {
				t.Fatalf("%+v", ran)
			}
		})
	}
}

// What a yes cannot be held to is said with the question, and nothing is asked for twice because of it.
func TestUnboundIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, commandTool{echo(false), `sh "$SCRIPT"`})
	asking(r, engine.Asking{Env: []string{"SCRIPT"}})
	r.say("!call act {}\n!---\n!say after")
	a := r.asked(1)
	want := `"$SCRIPT", which sh runs: the value of SCRIPT is not known`
	if got := approval.Unbound(a.Bound); got != want {
		t.Fatalf("%q", got)
	}
	if err := r.engine.Answer(context.Background(), a.ID, ada, true, ""); err != nil {
		t.Fatal(err)
	}
	events := r.untilEnds(1)
	if asked := bodies[chat.ApprovalAsked](events); len(asked) != 1 || asked[0].Unbound != want {
		t.Fatalf("%+v", asked)
	}
	if ran := bodies[chat.ToolRan](events); ran[0].Outcome != chat.Ran {
		t.Fatalf("%+v", ran)
	}
}

func TestReminderAndDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	clock := &handClock{at: time.Now()}
	r.config = func(c *engine.Config) { c.Now = clock.now }
	asking(r, engine.Asking{For: 24 * time.Hour, Remind: time.Hour})
	r.say("!call act {}\n!---\n!say {{last}}")
	a := r.asked(1)
	if a.Deadline.Sub(a.AskedAt) != 24*time.Hour || a.Remind.Sub(a.AskedAt) != time.Hour {
		t.Fatalf("%+v", a)
	}
	clock.add(2 * time.Hour)
	r.restart() // a sweep comes with every start
	events := r.until(func(ev chat.Event) bool { return is[chat.ApprovalNoted](ev) })
	if got := bodies[chat.ApprovalNoted](events); got[0].What != chat.Reminder || got[0].ID != a.ID {
		t.Fatalf("%+v", got)
	}
	r.restart() // and reminds only once
	clock.add(22 * time.Hour)
	err := r.engine.Answer(context.Background(), a.ID, ada, true, "")
	if !errors.Is(err, journal.ErrSettled) || !strings.Contains(err.Error(), "it expired at ") {
		t.Fatalf("an answer after the end: %v", err)
	}
	events = r.untilEnds(1)
	if got := lastText(events); got != "denied by deadline: nobody answered in time" {
		t.Fatal(got)
	}
	if got := bodies[chat.ApprovalNoted](events); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
}

type handClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func TestAnswerOfNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	if err := r.engine.Answer(context.Background(), "none", ada, true, ""); !errors.Is(err, journal.ErrUnknown) {
		t.Fatal(err)
	}
}
