package bus

import (
	"testing"

	"chorus/internal/chat"
)

const thread = chat.ThreadID("cli:here:one")

func rang(l *Listener) bool {
	select {
	case <-l.Bell():
		return true
	default:
		return false
	}
}

func TestRing(t *testing.T) {
	t.Parallel()
	var b Bus
	b.Ring(thread, Note{}) // nobody listens: nothing happens
	l, other := b.Listen(thread), b.Listen("cli:here:two")
	defer other.Close()
	b.Ring(thread, Note{Events: []chat.Event{{Seq: 1}}})
	b.Ring(thread, Note{Live: chat.Progress{Text: "x"}})
	if !rang(l) || rang(l) {
		t.Fatal("two notes are one ring")
	}
	notes, gap := l.Take()
	if len(notes) != 2 || gap || notes[0].Events[0].Seq != 1 {
		t.Fatalf("%+v %v", notes, gap)
	}
	if rang(other) {
		t.Fatal("another thread heard it")
	}
	l.Close()
	l.Close()
	b.Ring(thread, Note{})
	if rang(l) {
		t.Fatal("a closed listener heard something")
	}
}

// A listener that does not listen costs a bounded amount of memory, never blocks
// the writer, and is told that it missed something.
func TestSlowListenersGetAGap(t *testing.T) {
	t.Parallel()
	var b Bus
	l := b.Listen(thread)
	defer l.Close()
	for i := range 10 * room {
		b.Ring(thread, Note{Events: []chat.Event{{Seq: int64(i)}}})
	}
	notes, gap := l.Take()
	if !gap || len(notes) > room {
		t.Fatalf("%d notes, gap %v", len(notes), gap)
	}
	if _, gap := l.Take(); gap {
		t.Fatal("a gap is told once")
	}
	b.RingAll()
	if _, gap := l.Take(); !gap || !rang(l) {
		t.Fatal("RingAll sends everybody to the journal")
	}
}

// Whoever hears everything hears the events of every thread, only the kinds it wants,
// and no live pieces.
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
	if len(notes) != 1 || gap || notes[0].Events[0].Seq != 2 || !rang(ends) {
		t.Errorf("%+v %v", notes, gap)
	}
	for range 2 * room {
		b.Ring(thread, Note{Events: []chat.Event{{Body: chat.Took{}}}})
	}
	if notes, gap := all.Take(); len(notes) > room || !gap {
		t.Errorf("%d notes, gap %v", len(notes), gap)
	}
	ends.Close()
	ends.Close()
	b.Ring(thread, Note{Events: []chat.Event{{Body: chat.RunEnded{}}}})
	if notes, _ := ends.Take(); len(notes) > 0 {
		t.Error("a closed listener heard something")
	}
	if notes, _ := all.Take(); len(notes) != 1 {
		t.Error("closing one closed the other")
	}
}

// What others wrote is told to the listeners of that thread and to whoever wants to know
// of everything around; whoever hears what this process writes has missed nothing.
func TestStir(t *testing.T) {
	t.Parallel()
	var b Bus
	l, other, own, around := b.Listen(thread), b.Listen("cli:here:two"), b.Hear(), b.HearAround(chat.KindRunEnded)
	b.Stir(thread)
	for name, c := range map[string]struct {
		l    *Listener
		want bool
	}{"its listener": {l, true}, "another thread's": {other, false}, "this process's": {own, false}, "around": {around, true}} {
		if notes, gap := c.l.Take(); len(notes) > 0 || gap != c.want || rang(c.l) != c.want {
			t.Errorf("%s: %v %v", name, notes, gap)
		}
	}
	b.Ring(thread, Note{Events: []chat.Event{{Body: chat.Took{}}}})
	if rang(around) || !rang(own) {
		t.Error("of this process only the kinds it asked for")
	}
	b.RingAll()
	if _, gap := around.Take(); !gap || !rang(around) || rang(own) {
		t.Error("RingAll is about others")
	}
	for _, l := range []*Listener{l, other, own, around} {
		l.Close()
	}
}
