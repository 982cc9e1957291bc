package bus

import (
	"testing"

	"chorus/internal/chat"
)

const thread = chat.ThreadID("cli:here:one")

func woken(l *Subscription) bool {
	select {
	case <-l.Wake():
		return true
	default:
		return false
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	var b Bus
	b.Publish(thread, Note{}) // without a subscriber nothing happens
	l, other := b.Subscribe(thread), b.Subscribe("cli:here:two")
	defer other.Close()
	b.Publish(thread, Note{Events: []chat.Event{{Seq: 1}}})
	b.Publish(thread, Note{Live: chat.Progress{Text: "x"}})
	if !woken(l) || woken(l) {
		t.Fatal("two notes wake once")
	}
	notes, gap := l.Take()
	if len(notes) != 2 || gap || notes[0].Events[0].Seq != 1 {
		t.Fatalf("%+v %v", notes, gap)
	}
	if woken(other) {
		t.Fatal("the subscriber of another thread was woken")
	}
	l.Close()
	l.Close()
	b.Publish(thread, Note{})
	if woken(l) {
		t.Fatal("a closed subscriber got a note")
	}
}

// A subscriber that takes nothing costs a bounded amount of memory, never blocks
// the writer, and is told that it missed something.
func TestSlowSubscribersGetAGap(t *testing.T) {
	t.Parallel()
	var b Bus
	l := b.Subscribe(thread)
	defer l.Close()
	for i := range 10 * maxNotes {
		b.Publish(thread, Note{Events: []chat.Event{{Seq: int64(i)}}})
	}
	notes, gap := l.Take()
	if !gap || len(notes) > maxNotes {
		t.Fatalf("%d notes, gap %v", len(notes), gap)
	}
	if _, gap := l.Take(); gap {
		t.Fatal("a gap is reported once")
	}
	b.AllChanged()
	if _, gap := l.Take(); !gap || !woken(l) {
		t.Fatal("AllChanged sends every subscriber to the journal")
	}
}

// A subscriber to every thread gets the events of all, only the kinds it wants, and no live
// pieces.
func TestSubscribeAll(t *testing.T) {
	t.Parallel()
	var b Bus
	all, ends := b.SubscribeAll(), b.SubscribeAll(chat.KindRunEnded)
	b.Publish(thread, Note{Events: []chat.Event{{Seq: 1, Body: chat.Took{}}}})
	b.Publish(thread, Note{Live: chat.Progress{Text: "x"}})
	b.Publish("cli:here:two", Note{Events: []chat.Event{{Seq: 2, Body: chat.Took{}}, {Seq: 3, Body: chat.RunEnded{}}}})
	b.AllChanged()
	if notes, gap := all.Take(); len(notes) != 2 || gap {
		t.Errorf("%+v %v", notes, gap)
	}
	notes, gap := ends.Take()
	if len(notes) != 1 || gap || notes[0].Events[0].Seq != 2 || !woken(ends) {
		t.Errorf("%+v %v", notes, gap)
	}
	for range 2 * maxNotes {
		b.Publish(thread, Note{Events: []chat.Event{{Body: chat.Took{}}}})
	}
	if notes, gap := all.Take(); len(notes) > maxNotes || !gap {
		t.Errorf("%d notes, gap %v", len(notes), gap)
	}
	ends.Close()
	ends.Close()
	b.Publish(thread, Note{Events: []chat.Event{{Body: chat.RunEnded{}}}})
	if notes, _ := ends.Take(); len(notes) > 0 {
		t.Error("a closed subscriber got a note")
	}
	if notes, _ := all.Take(); len(notes) != 1 {
		t.Error("closing one subscriber closed the other")
	}
}

// What other processes wrote wakes the subscribers of that thread and those that asked for it; a subscriber to
// what this process writes has missed nothing.
func TestThreadChanged(t *testing.T) {
	t.Parallel()
	var b Bus
	l, other, own, around := b.Subscribe(thread), b.Subscribe("cli:here:two"), b.SubscribeAll(), b.SubscribeAllProcesses(chat.KindRunEnded)
	b.ThreadChanged(thread)
	for name, c := range map[string]struct {
		l    *Subscription
		want bool
	}{"its subscriber": {l, true}, "another thread's": {other, false}, "this process's": {own, false}, "of all processes": {around, true}} {
		if notes, gap := c.l.Take(); len(notes) > 0 || gap != c.want || woken(c.l) != c.want {
			t.Errorf("%s: %v %v", name, notes, gap)
		}
	}
	b.Publish(thread, Note{Events: []chat.Event{{Body: chat.Took{}}}})
	if woken(around) || !woken(own) {
		t.Error("not only the kinds that were asked for")
	}
	b.AllChanged()
	if _, gap := around.Take(); !gap || !woken(around) || woken(own) {
		t.Error("AllChanged is about other processes")
	}
	b.Publish(thread, Note{Events: []chat.Event{{Body: chat.RunEnded{}}}})
	if woke := woken(around); !woke || len(around.notes) > 0 {
		t.Errorf("a reader that only wants to know of changes: woken %v, keeps %v", woke, around.notes)
	}
	for _, l := range []*Subscription{l, other, own, around} {
		l.Close()
	}
}
