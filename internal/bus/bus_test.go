package bus

import (
	"testing"

	"chorus/internal/chat"
)

const thread = chat.ThreadID("cli:here:one")

func woken(l *Listener) bool {
	select {
	case <-l.Wake():
		return true
	default:
		return false
	}
}

func TestRing(t *testing.T) {
	t.Parallel()
	var b Bus
	b.Ring(thread, Note{}) // without a listener nothing happens
	l, other := b.Listen(thread), b.Listen("cli:here:two")
	defer other.Close()
	b.Ring(thread, Note{Events: []chat.Event{{Seq: 1}}})
	b.Ring(thread, Note{Live: chat.Progress{Text: "x"}})
	if !woken(l) || woken(l) {
		t.Fatal("two notes wake once")
	}
	notes, gap := l.Take()
	if len(notes) != 2 || gap || notes[0].Events[0].Seq != 1 {
		t.Fatalf("%+v %v", notes, gap)
	}
	if woken(other) {
		t.Fatal("the listener of another thread was woken")
	}
	l.Close()
	l.Close()
	b.Ring(thread, Note{})
	if woken(l) {
		t.Fatal("a closed listener got a note")
	}
}

// A listener that takes nothing costs a bounded amount of memory, never blocks
// the writer, and is told that it missed something.
func TestSlowListenersGetAGap(t *testing.T) {
	t.Parallel()
	var b Bus
	l := b.Listen(thread)
	defer l.Close()
	for i := range 10 * maxNotes {
		b.Ring(thread, Note{Events: []chat.Event{{Seq: int64(i)}}})
	}
	notes, gap := l.Take()
	if !gap || len(notes) > maxNotes {
		t.Fatalf("%d notes, gap %v", len(notes), gap)
	}
	if _, gap := l.Take(); gap {
		t.Fatal("a gap is reported once")
	}
	b.RingAll()
	if _, gap := l.Take(); !gap || !woken(l) {
		t.Fatal("RingAll sends every listener to the journal")
	}
}

// A listener to every thread gets the events of all, only the kinds it wants, and no live
// pieces.
func TestHear(t *testing.T) {
	t.Parallel()
	var b Bus
	all, ends := b.Hear(), b.Hear(chat.KindRunEnded)
	b.Ring(thread, Note{Events: []chat.Event{{Seq: 1, Body: chat.Took{}}}})
	b.Ring(thread, Note{Live: chat.Progress{Text: "x"}})
	b.Ring("cli:here:two", Note{Events: []chat.Event{{Seq: 2, Body: chat.Took{}}, {Seq: 3, Body: chat.RunEnded{}}}})
	b.RingAll()
	if notes, gap := all.Take(); len(notes) != 2 || gap {
		t.Errorf("%+v %v", notes, gap)
	}
	notes, gap := ends.Take()
	if len(notes) != 1 || gap || notes[0].Events[0].Seq != 2 || !woken(ends) {
		t.Errorf("%+v %v", notes, gap)
	}
	for range 2 * maxNotes {
		b.Ring(thread, Note{Events: []chat.Event{{Body: chat.Took{}}}})
	}
	if notes, gap := all.Take(); len(notes) > maxNotes || !gap {
		t.Errorf("%d notes, gap %v", len(notes), gap)
	}
	ends.Close()
	ends.Close()
	b.Ring(thread, Note{Events: []chat.Event{{Body: chat.RunEnded{}}}})
	if notes, _ := ends.Take(); len(notes) > 0 {
		t.Error("a closed listener got a note")
	}
	if notes, _ := all.Take(); len(notes) != 1 {
		t.Error("closing one listener closed the other")
	}
}

// What other processes wrote wakes the listeners of that thread and those that asked for it; a listener to
// what this process writes has missed nothing.
func TestStir(t *testing.T) {
	t.Parallel()
	var b Bus
	l, other, own, around := b.Listen(thread), b.Listen("cli:here:two"), b.Hear(), b.HearAround(chat.KindRunEnded)
	b.Stir(thread)
	for name, c := range map[string]struct {
		l    *Listener
		want bool
	}{"its listener": {l, true}, "another thread's": {other, false}, "this process's": {own, false}, "around": {around, true}} {
		if notes, gap := c.l.Take(); len(notes) > 0 || gap != c.want || woken(c.l) != c.want {
			t.Errorf("%s: %v %v", name, notes, gap)
		}
	}
	b.Ring(thread, Note{Events: []chat.Event{{Body: chat.Took{}}}})
	if woken(around) || !woken(own) {
		t.Error("not only the kinds that were asked for")
	}
	b.RingAll()
	if _, gap := around.Take(); !gap || !woken(around) || woken(own) {
		t.Error("RingAll is about other processes")
	}
	for _, l := range []*Listener{l, other, own, around} {
		l.Close()
	}
}
