package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mention"
	"chorus/internal/room/render"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// planned is a backend and an outbox that only take rows.
type planned struct {
	Backend
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

func (p *planned) Wake(...journal.Lane) {}

func (p *planned) Preview(journal.Lane, string, json.RawMessage) {}

// fakePlatform has one channel and is never called.
type fakePlatform struct{ platform.Platform }

func (fakePlatform) Name() string { return "discord" }

func (fakePlatform) Caps() platform.Caps {
	return platform.Caps{Label: "Discord", MaxText: 2000, Edits: true, Reactions: true, Buttons: true}
}

func (fakePlatform) Known(id string) (room.Channel, bool) { return room.Channel{ID: id}, id == "200" }

const thread = chat.ThreadID("discord:9/100:200@helper")

// publishing is a conversation that is published to a backend that only takes rows of the outbox.
func publishing(t *testing.T) (*planned, *conversation) {
	t.Helper()
	p := &planned{}
	c := New(Options{Bot: "b", Platform: fakePlatform{}, Backend: p, Outbox: p, Connected: func() bool { return true },
		Directory: func(string) mention.Directory { return mention.Directory{} }, Notifies: func(string, string, bool) []string { return nil },
		Log: slog.New(slog.DiscardHandler), Typing: time.Minute, Preview: time.Second, Idle: time.Minute, CallWait: time.Second}).conversation(thread)
	c.view = render.New(c.showOptions(thread))
	return p, c
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
	p := &conversation{previews: map[string]preview{}}
	var got []bool
	for _, body := range []string{`"working"`, `"waiting"`, `"waiting"`, `"waiting"`, `"waiting"`, `"working"`} {
		got = append(got, p.worthShowing(journal.Desired{Key: "r/status", Body: []byte(body)}))
	}
	if fmt.Sprint(got) != "[true true true false false true]" {
		t.Error(got)
	}
}

func TestWishesOfOneMoment(t *testing.T) {
	t.Parallel()
	lane := journal.Lane{Platform: "discord", Bot: "b", Channel: "1"}
	got := newest([]journal.Desired{{Lane: lane, Key: "a", Seq: 1}, {Lane: lane, Key: "b", Seq: 2}, {Lane: lane, Key: "a", Seq: 3}})
	if len(got) != 2 || got[0].Key != "a" || got[0].Seq != 3 || got[1].Key != "b" {
		t.Errorf("%+v", got)
	}
}

func TestPlacesOfAnswers(t *testing.T) {
	t.Parallel()
	p := newPlaces("discord", "discord:9/100:200@helper")
	event := func(seq int64, body chat.Body) chat.Event {
		return chat.Event{Seq: seq, Body: body, Platform: "discord", PlatformID: "200"}
	}
	p.learn(event(1, chat.Received{Prompt: true, Channel: "100", Post: "200", Principal: chat.Principal{ID: "7"}}))
	p.learn(event(2, chat.RunStarted{Run: "r"}))
	p.learn(event(3, chat.Took{Run: "r", Seqs: []int64{1}}))
	p.learn(event(4, chat.ApprovalAsked{ID: "q"}))
	for key, want := range map[string]string{"r/0": "200", "ask/q": "200", "refused/1": "100", "other/0": "100"} {
		if got := p.ofKey(key); got != want {
			t.Errorf("%s is in %s, not in %s", key, got, want)
		}
	}
	if p.ofMessage("200") != "100" || p.now() != "200" || len(p.askers()) != 1 || p.askers()[0] != "7" {
		t.Errorf("%+v", p)
	}
}
