package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"chorus/internal/agent"
	"chorus/internal/chat"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// reporting is an agent whose empty answers say what was done, with at most so many rounds.
func reporting(t *testing.T, a *act, rounds int, answers ...chat.Blocks) *agent.Agent {
	t.Helper()
	made := newAgent(t, a, answers...)
	made.Begin = func(context.Context, *transcript.Log, transcript.Waiting) (agent.Beginning, error) {
		return agent.Beginning{Run: "r", Start: chat.RunStarted{Model: "x/m", Settings: chat.Settings{MaxSteps: rounds, Dialogue: chat.Dialogue{ReportActions: true}}}}, nil
	}
	return made
}

// Who says nothing after its calls is taken at what it did.
func TestReportsActions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []chat.Blocks
		rounds  int
		reason  chat.Reason
		want    string
	}{
		"no words, no calls":      {[]chat.Blocks{nil}, 10, chat.EndDone, "Done."},
		"calls, then nothing":     {[]chat.Blocks{call(1), append(chat.TextBlocks("and another"), call(2)...), nil}, 10, chat.EndDone, "Done. Actions taken: act, act"},
		"calls, then words":       {[]chat.Blocks{call(1), chat.TextBlocks("Created.")}, 10, chat.EndDone, "Created."},
		"calls to the last round": {[]chat.Blocks{call(1), call(2)}, 2, chat.EndLimit, "Done. Actions taken: act, act"},
	} {
		h := &host{}
		h.guest(prompt())
		if _, err := reporting(t, &act{}, c.rounds, c.answers...).Run(t.Context(), fold(t, h), h); err != nil {
			t.Fatal(name, err)
		}
		end := h.journal[len(h.journal)-1].Body.(chat.RunEnded)
		text := end.Text
		if said, ok := h.journal[len(h.journal)-2].Body.(chat.Said); ok && end.Reason == chat.EndDone {
			text = said.Blocks.Text()
		}
		if end.Reason != c.reason || text != c.want {
			t.Errorf("%s: %s %q, want %q", name, end.Reason, text, c.want)
		}
	}
}

// once is a tool whose calls have one effect for each key.
type once struct {
	act
	made map[string]int
}

func (o *once) Spec() tool.Spec {
	s := o.act.Spec()
	s.Once = true
	return s
}

func (o *once) Run(ctx context.Context, args []byte) (tool.Result, error) {
	o.made[tool.CallFrom(ctx).Key]++
	return o.act.Run(ctx, args)
}

// Killed after each commit: a call with a key of its own runs again, under the same key, and its result is no interruption.
func TestKeyedCallsRunAgain(t *testing.T) {
	t.Parallel()
	answers := []chat.Blocks{call(1), chat.TextBlocks("done")}
	for crash := 0; ; crash++ {
		o := &once{made: map[string]int{}}
		set, err := tool.NewSet(o)
		if err != nil {
			t.Fatal(err)
		}
		h := &host{}
		h.guest(prompt())
		commits, died := 0, errors.New("died")
		dying := &dyingHost{host: h, die: func() error {
			if commits++; commits > crash {
				return died
			}
			return nil
		}}
		first := newAgent(t, &o.act, answers...)
		first.Tools = set
		if _, err := first.Run(t.Context(), fold(t, h), dying); err == nil {
			return
		}
		second := newAgent(t, &o.act, answers[strings.Count(h.kinds(), "said"):]...)
		second.Tools = set
		if _, err := second.Run(t.Context(), fold(t, h), h); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(h.journal, func(ev chat.Event) bool { _, ok := ev.Body.(chat.ToolRan); return ok })
		if ran := h.journal[i].Body.(chat.ToolRan); ran.Outcome != chat.Ran || len(o.made) != 1 {
			t.Errorf("crash at %d: %s, keys %v", crash, ran.Outcome, o.made)
		}
	}
}
