package record

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/transcript"
)

// memory keeps commits; refuse are the errors of the next ones.
type memory struct {
	events []chat.Event
	seen   int
	refuse []error
}

func (m *memory) Commit(_ context.Context, b Batch) ([]chat.Event, error) {
	var err error
	if len(m.refuse) > 0 {
		err, m.refuse = m.refuse[0], m.refuse[1:]
	}
	if err == nil {
		for _, ev := range b.Events {
			ev.Seq = int64(len(m.events) + 1)
			m.events = append(m.events, ev)
		}
	}
	news := slices.Clone(m.events[m.seen:])
	m.seen = len(m.events)
	return news, err
}

func (m *memory) kinds() string {
	var out []string
	for _, ev := range m.events {
		out = append(out, string(ev.Body.Kind()))
	}
	return strings.Join(out, " ")
}

// started is a thread in which a call has begun.
func started(t *testing.T, m *memory) (*Recorder, *transcript.Log) {
	t.Helper()
	log := transcript.New(nil)
	r := New(log, m)
	err := r.Write(t.Context(), chat.Received{Blocks: chat.TextBlocks("do it"), Prompt: true}, chat.RunStarted{Run: "r", Model: "x/m"}, chat.Took{Run: "r", Step: 1, Seqs: []int64{1}},
		chat.Asked{Step: 1, Attempt: 1, Model: "x/m"}, chat.Said{Step: 1, Attempt: 1, Stop: chat.StopTools, Blocks: chat.Blocks{chat.ToolUse{ID: "c", Name: "act"}}}, chat.ToolBegan{Call: "c"})
	if err != nil {
		t.Fatal(err)
	}
	return r, log
}

const before = "received run_started took asked said tool_began "

func TestAHeldResultTravelsWithTheNextCommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse error
		want   string
	}{
		"together":           {nil, "tool_ran asked"},
		"something came":     {journal.ErrMoved, "tool_ran"},
		"a budget forbids":   {journal.ErrBudget, "tool_ran"},
		"the disk is broken": {errors.New("disk full"), ""},
	} {
		m := &memory{}
		r, log := started(t, m)
		ran := chat.ToolRan{Call: "c", Name: "act", Outcome: chat.Ran, Blocks: chat.TextBlocks("done")}
		r.Hold(Batch{Events: []chat.Event{{Body: ran}}}, ran)
		if !log.Calls()[0].Done {
			t.Errorf("%s: the log does not suppose the result", name)
		}
		if c.refuse != nil {
			m.refuse = []error{c.refuse}
		}
		err := r.Write(t.Context(), chat.Asked{Step: 2, Attempt: 1, Model: "x/m"})
		if !errors.Is(err, c.refuse) {
			t.Errorf("%s: %v", name, err)
		}
		if got := m.kinds(); got != strings.TrimSpace(before+c.want) {
			t.Errorf("%s: written %q", name, got)
		}
		if calls := log.Calls(); (len(calls) == 0 || calls[0].Done) != (c.want != "") {
			t.Errorf("%s: the log has %+v", name, calls)
		}
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	m := &memory{}
	r, _ := started(t, m)
	ran := chat.ToolRan{Call: "c", Name: "act", Outcome: chat.Ran}
	r.Hold(Batch{Events: []chat.Event{{Body: ran}}}, ran)
	for range 2 { // the second has nothing to write
		if err := r.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.kinds(); got != before+"tool_ran" || m.events[6].Run != "r" {
		t.Errorf("%s", got)
	}
}
