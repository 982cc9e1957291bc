package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// picky cannot fold what it does not like.
type picky struct {
	telling
	codec string
	bad   string
}

func (p picky) Codec() string { return p.codec }

func (p picky) Fold(t journal.Thread, state []byte, events []chat.Event) ([]byte, []journal.Desired, error) {
	if p.bad != "" && strings.Contains(string(t.ID), p.bad) {
		return nil, nil, errors.New("cannot")
	}
	return p.telling.Fold(t, state, events)
}

func (h *home) plans(f Fold) *Planner {
	return NewPlanner(PlannerOptions{Journal: h.db, Reader: "second", Transport: "talk", Fold: f})
}

func (h *home) planned(channel, key string) string {
	h.t.Helper()
	o, err := h.db.Outgoing(context.Background(), laneOf(channel), key)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(o.Body)
}

func TestPlannerGoesOnFromItsState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t, newPlatform(0), Options{})
		h.start(-1)
		defer h.end()
		for i := range 600 { // more than a page
			h.say(thread, fmt.Sprintf("10 k%d a", i))
		}
		if err := h.plans(picky{codec: "1"}).CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.say(thread, "10 k0 b")
		h.say(thread, "10 k0 c")
		// Another version cannot read the state and makes it anew.
		for _, codec := range []string{"2", "1"} {
			if err := h.plans(picky{codec: codec}).Thread(t.Context(), thread); err != nil {
				t.Fatal(err)
			}
			if got := h.planned("10", "k0"); got != `"k0: a b c"` {
				t.Fatal(got)
			}
		}
	})
}

func TestPlannerPassesOverABadThread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t, newPlatform(0), Options{})
		h.start(-1)
		defer h.end()
		for _, name := range []string{"bad", "good", "better"} {
			h.say(chat.ThreadID("talk:room:"+name+"@main"), "10 "+name+" x")
		}
		h.say("mail:room:other@main", "10 other x")
		p := h.plans(picky{codec: "1", bad: "bad"})
		if err := p.CatchUp(t.Context()); err == nil || !strings.Contains(err.Error(), "fold events 1 to 1 of thread talk:room:bad") {
			t.Fatalf("%v", err)
		}
		behind, err := h.db.BehindIn(t.Context(), "second", "talk", 0)
		if err != nil || len(behind) != 1 {
			t.Fatal(behind, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		p.Look("talk:room:bad@main")
		h.say("talk:room:good@main", "10 good y")
		p.Look("talk:room:good@main")
		synctest.Wait()
		if got := h.planned("10", "good"); got != `"good: x y"` {
			t.Fatal(got)
		}
		// Nobody rings for this one: the sweep finds it.
		h.say("talk:room:better@main", "10 better y")
		time.Sleep(31 * time.Second)
		if at, err := h.db.Reader(t.Context(), "second", "talk:room:better@main"); err != nil || at != 2 {
			t.Fatal(at, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestPlainFold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t, newPlatform(0), Options{})
		h.start(-1)
		defer h.end()
		h.say(thread, "10 a x")
		plain := Plain(func(events []chat.Event) (out []journal.Desired) {
			for _, ev := range events {
				out = append(out, journal.Desired{Lane: laneOf("20"), Key: fmt.Sprint(ev.Seq), Thread: ev.Thread, Seq: ev.Seq, Body: quoted("seen")})
			}
			return out
		})
		for range 2 {
			if err := h.plans(plain).CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := h.planned("20", "1"); got != `"seen"` {
			t.Fatal(got)
		}
	})
}
