package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"chorus/internal/agent"
	"chorus/internal/chat"
	"chorus/internal/transcript"
)

// noted lists the notes of a journal.
func (h *host) noted() []string {
	var out []string
	for _, ev := range h.journal {
		if n, ok := ev.Body.(chat.Noted); ok {
			out = append(out, n.What+"="+n.Text)
		}
	}
	return out
}

// TestNotesBeforeEveryRequest: what changes while a run is on is said before its next
// request, what does not is said once, and nothing that was sent before changes.
func TestNotesBeforeEveryRequest(t *testing.T) {
	t.Parallel()
	a := &act{}
	ag := newAgent(t, a, call(1), call(2), chat.TextBlocks("done"))
	ag.Notes = func(context.Context, *transcript.Log) []chat.Noted {
		return []chat.Noted{{What: "date", Text: "Monday"}, {What: "calls", Text: fmt.Sprint(len(a.ran) / 2)}}
	}
	h := &host{}
	h.guest(prompt())
	if state, err := ag.Run(context.Background(), fold(t, h), h); err != nil || state != agent.Finished {
		t.Fatal(state, err)
	}
	if got := strings.Join(h.noted(), " "); got != "date=Monday calls=0 calls=1" {
		t.Fatalf("notes: %s\n%s", got, h.kinds())
	}
	if want := "received run_started noted noted took asked said tool_began tool_ran asked said tool_began tool_ran noted asked said run_ended"; h.kinds() != want {
		t.Fatalf("journal:\n%s, wanted\n%s", h.kinds(), want)
	}
}

// TestNotesThatNeverSettle: a note that is another at every look costs one event a request, not the run.
func TestNotesThatNeverSettle(t *testing.T) {
	t.Parallel()
	looks := 0
	ag := newAgent(t, &act{}, call(1), chat.TextBlocks("done"))
	ag.Notes = func(context.Context, *transcript.Log) []chat.Noted {
		looks++
		return []chat.Noted{{What: "looks", Text: fmt.Sprint(looks)}}
	}
	h := &host{}
	h.guest(prompt())
	if state, err := ag.Run(context.Background(), fold(t, h), h); err != nil || state != agent.Finished {
		t.Fatal(state, err)
	}
	if n := len(h.noted()); n != 3 {
		t.Fatalf("%d notes: %s", n, h.kinds())
	}
}

// TestNotesSurviveCrashes stops the loop after each commit: whoever goes on shows each note once.
func TestNotesSurviveCrashes(t *testing.T) {
	t.Parallel()
	answers := []chat.Blocks{call(1), chat.TextBlocks("done")}
	for crash := 0; ; crash++ {
		a := &act{}
		notes := func(_ context.Context, log *transcript.Log) []chat.Noted {
			return []chat.Noted{{What: "calls", Text: fmt.Sprint(len(a.ran))}}
		}
		h := &host{}
		h.guest(prompt())
		commits, died := 0, errors.New("died")
		ag := newAgent(t, a, answers...)
		ag.Notes = notes
		_, err := ag.Run(context.Background(), fold(t, h), &dyingHost{host: h, die: func() error {
			if commits++; commits > crash {
				return died
			}
			return nil
		}})
		if err == nil {
			return
		}
		if !errors.Is(err, died) {
			t.Fatal(err)
		}
		ag = newAgent(t, a, answers[strings.Count(h.kinds(), "said"):]...)
		ag.Notes = notes
		if state, err := ag.Run(context.Background(), fold(t, h), h); err != nil || state != agent.Finished {
			t.Fatalf("crash at %d: %v %v\n%s", crash, state, err, h.kinds())
		}
		if got := strings.Join(h.noted(), " "); got != "calls=0 calls=1" {
			t.Fatalf("crash at %d: %s\n%s", crash, got, h.kinds())
		}
	}
}
