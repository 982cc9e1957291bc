package connector

import (
	"context"
	"fmt"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/room/render"
)

// planned is a backend that only takes rows of the outbox.
type planned struct {
	Outbox
	Agents
	Conversations
	desired []journal.Desired
	upTo    int64
}

func (p *planned) SetDesired(_ context.Context, list ...journal.Desired) error {
	p.desired = append(p.desired, list...)
	return nil
}

func (p *planned) Display(chat.ThreadID) Display { return Display{} }

func (p *planned) Plan(_ context.Context, plan journal.Plan) error {
	p.desired, p.upTo = append(p.desired, plan.Desired...), plan.UpTo
	return nil
}

func (p *planned) Redact(text string) string { return text }

const thread = chat.ThreadID("discord:9/100:200@helper")

// publishing is a conversation that is published to a backend that only takes rows of the outbox.
func publishing(t *testing.T) (*planned, *publisher) {
	t.Helper()
	p := &planned{}
	b := fakeBot(t, Backend{Outbox: p, Agents: p, Conversations: p})
	return p, &publisher{bot: b, thread: thread, reactions: map[render.Reaction]bool{}, shown: map[string]bool{}, previews: map[string]preview{}, where: newPlaces("discord", thread), view: render.New(b.showOptions(thread))}
}

// A run whose first event was read and whose second was not is shown nowhere yet: its status would
// stay in the channel for ever while the answer goes to the thread.
func TestStatusWaitsUntilItsPlaceIsKnown(t *testing.T) {
	t.Parallel()
	plans, l := publishing(t)
	l.typed = time.Now() // typing is asked of the platform itself
	for i, body := range []chat.Body{
		chat.Received{Prompt: true, Channel: "100", Post: "200", Blocks: chat.TextBlocks("hello"), Principal: chat.Principal{Kind: "discord", ID: "7"}},
		chat.RunStarted{Run: "r"}, chat.Took{Run: "r", Seqs: []int64{1}},
	} {
		ev := chat.Event{Thread: thread, Seq: int64(i + 1), Run: "r", Body: body, Platform: "discord"}
		if i == 0 {
			ev.PlatformID = "200"
		}
		if err := l.take(t.Context(), Item{Event: &ev}, true); err != nil {
			t.Fatal(err)
		}
		l.changed = true
		if err := l.refresh(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	shown := 0
	for _, w := range plans.desired {
		if w.Thing == journal.Reaction {
			continue
		}
		if shown++; w.Lane.Channel != "200" {
			t.Errorf("%s stands in %s", w.Key, w.Lane.Channel)
		}
	}
	if shown != 1 {
		t.Errorf("shown %d times", shown)
	}
}

// An answer whose last piece lies behind its last event in the reader's queue is told all
// the same: nothing else would come to set it going.
func TestALivePieceBehindTheEndHoldsNothingBack(t *testing.T) {
	t.Parallel()
	plans, l := publishing(t)
	events := []chat.Body{
		chat.Received{Prompt: true, Channel: "100", Blocks: chat.TextBlocks("hello"), Principal: chat.Principal{Kind: "discord", ID: "7"}},
		chat.RunStarted{Run: "r"}, chat.Took{Run: "r", Seqs: []int64{1}}, chat.Asked{}, chat.Said{Blocks: chat.TextBlocks("the answer")},
		chat.RunEnded{Run: "r", Reason: chat.EndDone},
	}
	for i, body := range events {
		ev := chat.Event{Thread: thread, Seq: int64(i + 1), Run: "r", Body: body, Platform: "discord"}
		if i == 0 {
			ev.PlatformID = "200"
		}
		if err := l.take(t.Context(), Item{Event: &ev}, false); err != nil { // more lies ready
			t.Fatal(err)
		}
	}
	if err := l.take(t.Context(), Item{Live: chat.Delta{}}, true); err != nil {
		t.Fatal(err)
	}
	answered := false
	for _, w := range plans.desired {
		answered = answered || w.Key == "r/0" && w.Final && !w.Gone
	}
	if !answered || plans.upTo != int64(len(events)) {
		t.Errorf("told up to %d of %d: %+v", plans.upTo, len(events), plans.desired)
	}
}

// A status that says the same is shown twice and then left alone, until it changes.
func TestTheSameIsNotShownForEver(t *testing.T) {
	t.Parallel()
	p := &publisher{previews: map[string]preview{}}
	var got []bool
	for _, body := range []string{`"working"`, `"waiting"`, `"waiting"`, `"waiting"`, `"waiting"`, `"working"`} {
		got = append(got, p.worthShowing(journal.Desired{Key: "r/status", Body: []byte(body)}))
	}
	if fmt.Sprint(got) != "[true true true false false true]" {
		t.Error(got)
	}
}
