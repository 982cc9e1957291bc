package engine_test

import (
	"context"
	"testing"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/engine"
)

// byHand are live pieces of another process that a test hands out.
type byHand struct {
	pieces    chan chat.Live
	following chan bool // true: somebody began to follow; false: ended
}

func (f *byHand) Follow(ctx context.Context, _ chat.ThreadID, _ <-chan struct{}, publish func(chat.Live)) {
	f.following <- true
	defer func() { f.following <- false }()
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-f.pieces:
			publish(p)
		}
	}
}

// watcher reads what an engine shows of the thread.
type watcher struct {
	t     *testing.T
	items chan engine.Item
	stop  func()
}

func newWatcher(t *testing.T, e *engine.Engine) *watcher {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w := &watcher{t: t, items: make(chan engine.Item, 1000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for item, err := range e.Watch(ctx, thread, 0) {
			if err != nil {
				t.Error(err)
				return
			}
			w.items <- item
		}
	}()
	w.stop = func() { cancel(); <-ended }
	t.Cleanup(w.stop)
	return w
}

// live is the next live piece, and the kinds of the events that came before it.
func (w *watcher) live() (piece chat.Live, before []chat.Kind) {
	w.t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case item := <-w.items:
			if item.Live != nil {
				return item.Live, before
			}
			before = append(before, item.Event.Body.Kind())
		case <-late:
			w.t.Fatalf("no live piece after %v", before)
		}
	}
}

// Live pieces of another process are shown among the events: not before their run began, not after what they became was
// said, and as one text to whoever comes late. Nobody asks for them when nobody watches.
func TestLivePiecesFromElsewhere(t *testing.T) {
	t.Parallel()
	r := newStreet(t)
	c := r.engine.Config
	hand := &byHand{pieces: make(chan chat.Live), following: make(chan bool, 10)}
	c.Bus, c.Peers, c.Elsewhere = &bus.Bus{}, nil, hand // no notification comes: only pieces make it look
	c.Adopt = func(chat.ThreadID) bool { return false }
	other := engine.New(c)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := other.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	first := newWatcher(t, other)
	if !<-hand.following {
		t.Fatal("nobody follows")
	}
	r.say("!say one")
	ended := bodies[chat.RunEnded](r.untilEnds(1))[0]
	next := chat.Delta{Run: "next", Step: 1, Attempt: 1, What: chat.DeltaText, Text: "An answer "}
	hand.pieces <- chat.Delta{Run: ended.Run, Step: 1, Attempt: 1, What: chat.DeltaText, Text: "one"} // too late
	hand.pieces <- next
	piece, before := first.live()
	if piece != chat.Live(next) {
		t.Errorf("%#v", piece)
	}
	if len(before) == 0 || before[len(before)-1] != chat.KindRunEnded {
		t.Errorf("before it came %v", before)
	}
	hand.pieces <- chat.Delta{Run: "next", Step: 1, Attempt: 1, What: chat.DeltaText, Offset: len(next.Text), Text: "in the making"}
	if _, more := first.live(); len(more) > 0 {
		t.Errorf("and then %v", more)
	}
	second := newWatcher(t, other)
	if piece, _ := second.live(); piece.(chat.Delta).Text != "An answer in the making" || piece.(chat.Delta).Offset != 0 {
		t.Errorf("whoever comes late sees %#v", piece)
	}
	first.stop()
	second.stop()
	if <-hand.following {
		t.Error("a second one follows")
	}
}
