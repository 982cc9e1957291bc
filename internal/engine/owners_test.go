package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/transcript"
)

// second is another engine on the same home, as another process would be.
func (r *rig) second(adopt bool) *engine.Engine {
	r.t.Helper()
	c := r.engine.Config
	c.Bus = &bus.Bus{}
	c.SweepEvery = 5 * time.Millisecond
	c.Adopt = func(chat.ThreadID) bool { return adopt }
	e := engine.New(c)
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := e.Stop(ctx); err != nil {
			r.t.Error(err)
		}
	})
	return e
}

// A second process sees what the first one does, and takes over only when the lock
// is free.
func TestTakeover(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newRig(t, f)
	r.say("!call act {}\n!---\n!say {{last}}")
	<-began
	other := r.second(true)
	other.Wake(thread) // asked for it, but the first one has it
	row, err := r.db.Thread(context.Background(), thread)
	if err != nil {
		t.Fatal(err)
	}
	epoch := row.Epoch
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.engine.Stop(ctx); err != nil { // the first process ends
		t.Fatal(err)
	}
	release <- struct{}{}
	var text string
	for item, err := range other.Watch(ctx, thread, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event == nil {
			continue
		}
		if said, ok := item.Event.Body.(chat.Said); ok {
			text = said.Blocks.Text()
		}
		if is[chat.RunEnded](*item.Event) {
			break
		}
	}
	if !strings.HasPrefix(text, "interrupted") {
		t.Fatalf("the new owner said %q", text)
	}
	if row, err = r.db.Thread(ctx, thread); err != nil || row.Epoch <= epoch {
		t.Fatalf("epoch %d after %d, %v", row.Epoch, epoch, err)
	}
	if len(began) != 0 {
		t.Fatal("the call ran twice")
	}
}

// An owner that was fenced stops at once and does not write what it had; whoever
// takes the thread next finds a call that had begun.
func TestFencedOwnerIsSilent(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newRig(t, f)
	r.say("!call act {}\n!---\n!say over")
	<-began
	row, err := r.db.Take(context.Background(), thread) // somebody else takes the thread
	if err != nil {
		t.Fatal(err)
	}
	release <- struct{}{} // the call ends well, for an owner that is none any more
	r.engine.Wake(thread) // and the thread is taken once more
	events := r.untilEnds(1)
	ran := bodies[chat.ToolRan](events)
	if len(ran) != 1 || ran[0].Outcome != chat.Interrupted || len(began) != 0 {
		t.Fatalf("%+v\n%s", ran, show(events))
	}
	if after, err := r.db.Thread(context.Background(), thread); err != nil || after.Epoch <= row.Epoch {
		t.Fatalf("epoch %d, %v", after.Epoch, err)
	}
	if n := r.engine.Fenced(); n != 1 {
		t.Errorf("%d threads were lost to others", n)
	}
}

// A guest process only hears: it writes a steer and runs nothing.
func TestGuestProcessDoesNotRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.say("!say one")
	r.untilEnds(1)
	guest := r.second(false)
	asPrompt, err := guest.Steer(context.Background(), thread, steer("!say two", chat.Interrupt))
	if err != nil || !asPrompt {
		t.Fatal(asPrompt, err)
	}
	if n := guest.Actors(); n != 0 {
		t.Fatalf("%d actors in a guest", n)
	}
	r.engine.Wake(thread)
	if got := lastText(r.untilEnds(2)); got != "two" {
		t.Fatal(got)
	}
}

// Opening a thread costs its window, not its history: a snapshot stands in for what
// is behind it, and renders the same request.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 50 {
		r.say(fmt.Sprintf("!say answer %d", i))
		r.untilEnds(i + 1)
	}
	r.restart()
	ctx := context.Background()
	snap, err := r.db.Snapshot(ctx, thread, transcript.Codec)
	if err != nil || snap.Seq < 200 {
		t.Fatalf("snapshot at %d: %v", snap.Seq, err)
	}
	quick, err := engine.Load(ctx, r.db, thread)
	if err != nil || quick.Seq() != snap.Seq {
		t.Fatalf("loaded up to %d, %v", quick.Seq(), err)
	}
	if err := engine.Fold(ctx, r.db, thread, quick); err != nil {
		t.Fatal(err)
	}
	slow := transcript.New(nil)
	for ev, err := range r.db.AllEvents(ctx, thread, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if err := slow.Apply(ev); err != nil {
			t.Fatal(err)
		}
	}
	a, err := quick.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	b, err := slow.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if string(a) != string(b) {
		t.Fatal("the snapshot and the history disagree")
	}
	r.say("!say more")
	if got := lastText(r.untilEnds(51)); got != "more" {
		t.Fatal(got)
	}
}

// Trimming leaves out the older part and keeps the journal.
func TestTrim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 4 {
		r.say(fmt.Sprintf("!say answer %d", i))
		r.untilEnds(i + 1)
	}
	ctx := context.Background()
	if err := r.engine.Trim(ctx, thread, 2); err != nil {
		t.Fatal(err)
	}
	log := transcript.New(nil)
	if err := engine.Fold(ctx, r.db, thread, log); err != nil {
		t.Fatal(err)
	}
	if n := log.Messages(); n != 4 {
		t.Fatalf("%d messages are left of two turns", n)
	}
	if err := r.engine.Trim(ctx, thread, 0); err != nil {
		t.Fatal(err)
	}
	if err := engine.Fold(ctx, r.db, thread, log); err != nil {
		t.Fatal(err)
	}
	if n := log.Messages(); n != 1 {
		t.Fatalf("%d messages are left of a summary", n)
	}
	f, began, release := hold("act", false)
	busy := newRig(t, f)
	busy.say("!call act {}")
	<-began
	if err := busy.engine.Trim(ctx, thread, 1); err == nil {
		t.Fatal("a running thread was trimmed")
	}
	release <- struct{}{}
	busy.untilEnds(1)
}
