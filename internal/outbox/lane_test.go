package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
)

const thread = chat.ThreadID("talk:room:one@main")

// in runs a story in a bubble, in which time passes only when everybody waits.
func in(t *testing.T, window time.Duration, o Options, story func(t *testing.T, h *home, p *platform)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(window)
		h := newHome(t, p, o)
		h.start(-1)
		defer func() { h.end() }()
		story(t, h, p)
		p.late.Wait()
	})
}

func (h *home) wish(list ...journal.Desired) {
	h.t.Helper()
	if err := h.db.SetDesired(context.Background(), list...); err != nil {
		h.t.Fatal(err)
	}
	for _, d := range list {
		h.engine.Wake(d.Lane)
	}
}

func (h *home) settled() {
	h.t.Helper()
	if err := h.settle(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) shows(channel string, want ...string) {
	h.t.Helper()
	if got := h.platform.shows(channel); !slices.Equal(got, want) {
		h.t.Fatalf("channel %s shows %q, want %q", channel, got, want)
	}
}

func wished(channel, key, body string) journal.Desired {
	return journal.Desired{Lane: laneOf(channel), Key: key, Thread: thread, Body: quoted(body)}
}

func final(d journal.Desired) journal.Desired {
	d.Final = true
	return d
}

func kinds(calls []string) (out []string) {
	for _, c := range calls {
		kind, _, _ := strings.Cut(c, " ")
		out = append(out, kind)
	}
	return out
}

func TestEditsAreCoalesced(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{}, func(t *testing.T, h *home, p *platform) {
		for i := range 100 {
			h.wish(wished("10", "a", fmt.Sprint(i)))
			time.Sleep(50 * time.Millisecond)
		}
		h.wish(final(wished("10", "a", "the end")))
		synctest.Wait()
		time.Sleep(20 * time.Millisecond)
		h.shows("10", `"the end"`) // the last word does not wait for its turn
		h.settled()
		m := p.message("10", 0)
		if n := len(m.edits); n < 5 || n > 6 {
			t.Fatalf("%d edits in five seconds", n)
		}
		for i, at := range m.edits[1:] {
			if gap := at.Sub(m.edits[i]); gap < time.Second && i < len(m.edits)-2 {
				t.Fatalf("two edits within %v", gap)
			}
		}
	})
}

func TestPreviews(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{}, func(t *testing.T, h *home, p *platform) {
		h.engine.Preview(laneOf("10"), "none", quoted("of nothing"))
		h.wish(wished("10", "a", "…"))
		for i := range 30 {
			h.engine.Preview(laneOf("10"), "a", quoted(fmt.Sprint("so far ", i)))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		h.shows("10", `"so far 29"`)
		if n := len(p.message("10", 0).edits); n < 3 || n > 4 {
			t.Fatalf("%d previews in three seconds", n)
		}
		h.engine.Preview(laneOf("10"), "a", quoted("too late"))
		h.wish(final(wished("10", "a", "…"))) // the same as at first, and yet the last word
		h.engine.Preview(laneOf("10"), "a", quoted("later still"))
		h.settled()
		time.Sleep(5 * time.Second)
		h.shows("10", `"…"`)
	})
}

// A preview that we gave up may arrive behind the final text.
func TestLatePreview(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{CallTimeout: time.Second}, func(t *testing.T, h *home, p *platform) {
		h.wish(wished("10", "a", "…"))
		time.Sleep(2 * time.Second)
		p.always(slow)
		h.engine.Preview(laneOf("10"), "a", quoted("half"))
		time.Sleep(100 * time.Millisecond)
		p.always(fine)
		h.wish(final(wished("10", "a", "whole")))
		h.settled()
		h.shows("10", `"whole"`)
		if got := kinds(p.called()); !slices.Equal(got, []string{"create", "edit", "edit", "edit"}) {
			t.Fatal(got)
		}
	})
}

// An edit that we gave up may arrive behind the one after it, also where the same text was said again in between.
func TestLateEdit(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{CallTimeout: time.Second}, func(t *testing.T, h *home, p *platform) {
		h.wish(wished("10", "a", "one"))
		h.settled()
		p.goes(slow, fine)
		h.wish(wished("10", "a", "two"))
		for range 250 { // given up after a second, and said again before it arrives two seconds later
			time.Sleep(10 * time.Millisecond)
			if n := len(p.message("10", 0).edits); n > 0 {
				break
			}
		}
		h.wish(final(wished("10", "a", "three")))
		h.settled()
		time.Sleep(10 * time.Second)
		h.shows("10", `"three"`)
		if n := len(p.message("10", 0).edits); n < 4 {
			t.Errorf("%d edits: nothing came late", n)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{BackoffMax: 5 * time.Second}, func(t *testing.T, h *home, p *platform) {
		p.goes(notDone, notDone, notDone, notDone, notDone, notDone, notDone, notDone, notDone) // one create, then finds
		h.wish(wished("10", "a", "x"))
		h.settled()
		var times []string
		for _, c := range p.called() {
			times = append(times, c[strings.LastIndex(c, " ")+1:])
		}
		// 1, 2, 4, then 5 s; each call takes 10 ms.
		want := []string{"0s", "1.01s", "3.02s", "7.03s", "12.04s", "17.05s", "22.06s", "27.07s", "32.08s", "37.09s", "37.1s"}
		if !slices.Equal(times, want) {
			t.Fatalf("%v\nwant %v", times, want)
		}
	})
}

func TestRateLimits(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{}, func(t *testing.T, h *home, p *platform) {
		p.goes(stormedAll)
		h.wish(wished("10", "a", "x"))
		time.Sleep(100 * time.Millisecond)
		h.wish(wished("20", "b", "y")) // waits too: the limit is global
		h.settled()
		if got := p.called(); len(got) != 3 || !strings.HasSuffix(got[1], " 2.01s") || !strings.HasSuffix(got[2], " 2.01s") {
			t.Fatal(got)
		}
		p.goes(stormed)
		from := time.Now()
		h.wish(wished("10", "c", "x"))
		time.Sleep(100 * time.Millisecond)
		h.wish(wished("20", "d", "y")) // another route: at once
		time.Sleep(100 * time.Millisecond)
		h.shows("20", `"y"`, `"y"`)
		h.settled()
		if took := p.message("10", 1).at.Sub(from); took < 3*time.Second {
			t.Fatalf("after %v already", took)
		}
	})
	in(t, 0, Options{AllCalls: Rate{10, time.Second}, LaneCalls: Rate{2, time.Second}}, func(t *testing.T, h *home, p *platform) {
		for i := range 20 {
			h.wish(wished(fmt.Sprint(10+i%5), fmt.Sprint(i), "x"))
		}
		h.settled()
		var at []time.Duration
		for _, c := range p.called() {
			d, err := time.ParseDuration(c[strings.LastIndex(c, " ")+1:])
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, d)
		}
		if len(at) != 20 {
			t.Fatalf("%d calls for 20 messages", len(at))
		}
		for i := 10; i < len(at); i++ {
			if at[i]-at[i-10] < time.Second {
				t.Fatalf("eleven calls within %v: %v", at[i]-at[i-10], at)
			}
		}
	})
}

func TestDeadLanes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heard []journal.Outgoing
	o := Options{Parallel: 3, Failed: func(o journal.Outgoing) { mu.Lock(); heard = append(heard, o); mu.Unlock() }}
	in(t, 0, o, func(t *testing.T, h *home, p *platform) {
		p.denies(map[string]Why{"10": Forbidden, "20": Gone, "30": Archived, "40": Temporary})
		group := func(d journal.Desired) journal.Desired { d.Group = "run"; return d }
		for _, c := range []string{"10", "20", "30", "40"} {
			h.wish(group(wished(c, "a", "x")), group(wished(c, "b", "y")), wished(c, "c", "z"))
			h.wish(journal.Desired{Lane: laneOf(c), Key: "a~ok", Thing: journal.Reaction, TargetKey: "a", Body: quoted("ok")})
		}
		for i := range 20 {
			h.wish(wished("50", fmt.Sprint(i), fmt.Sprint(i)))
		}
		time.Sleep(time.Second)
		if got := len(p.shows("50")); got != 20 {
			t.Fatalf("the living lane has %d messages", got)
		}
		list, err := h.db.OutgoingFor(t.Context(), store.OutFilter{State: journal.Failed})
		if err != nil || len(list) != 12 {
			t.Fatalf("%d failures, %v", len(list), err)
		}
		mu.Lock()
		if len(heard) != 9 || heard[0].Why == "" || heard[0].Error == "" || heard[0].Thread != thread { // two heads and a reaction for each
			t.Fatalf("%d heard: %+v", len(heard), heard)
		}
		mu.Unlock()
		p.denies(nil)
		h.settled()
		h.shows("40", `"x" +"ok"`, `"y"`, `"z"`)
		h.wish(wished("10", "a", "another text is worth a try"))
		h.settled()
		h.shows("10", `"another text is worth a try"`)
	})
}

func TestParallel(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{Parallel: 3}, func(t *testing.T, h *home, p *platform) {
		for i := range 60 {
			h.wish(wished(fmt.Sprint(10+i%20), fmt.Sprint(i), fmt.Sprint(i)))
		}
		h.settled()
		p.mu.Lock()
		most := p.most
		p.mu.Unlock()
		if most != 3 {
			t.Fatalf("%d calls at the same time", most)
		}
		for c := range 20 {
			h.shows(fmt.Sprint(10+c), fmt.Sprintf("%q", fmt.Sprint(c)), fmt.Sprintf("%q", fmt.Sprint(c+20)), fmt.Sprintf("%q", fmt.Sprint(c+40)))
		}
	})
}

// The gateway often tells of a message before the call that made it comes back, or when it
// never does.
func TestEchoAndSettled(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{}, func(t *testing.T, h *home, p *platform) {
		p.always(lost)
		h.wish(wished("10", "a", "x"))
		time.Sleep(100 * time.Millisecond)
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := h.engine.Settled(short, laneOf("10")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("settled: %v", err)
		}
		waited := make(chan error)
		go func() { waited <- h.engine.Settled(t.Context(), laneOf("10")) }()
		synctest.Wait()
		for range 2 {
			if _, err := h.engine.Echo(t.Context(), laneOf("10").Nonce("a"), "1"); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-waited; err != nil {
			t.Fatal(err)
		}
		h.settled()
		if got := kinds(p.called()); !slices.Equal(got, []string{"create"}) {
			t.Fatal(got)
		}
		places, err := h.db.Places(t.Context(), "talk", "1")
		if err != nil || len(places) != 1 || places[0].Thread != thread {
			t.Fatal(places, err)
		}
	})
}

// A stop waits for calls that are on and records what they came to; one that hangs is cut.
func TestStop(t *testing.T) {
	t.Parallel()
	in(t, 5*time.Minute, Options{NonceWindow: time.Minute, Grace: 3 * time.Second}, func(t *testing.T, h *home, p *platform) {
		h.wish(wished("10", "a", "x"), wished("10", "b", "y"))
		time.Sleep(5 * time.Millisecond) // in the middle of the first call
		h.end()
		if got := p.called(); len(got) != 1 {
			t.Fatal(got)
		}
		p.always(slow)
		h.start(-1)
		o, err := h.db.Outgoing(t.Context(), laneOf("10"), "a")
		if err != nil || o.State != journal.Sent {
			t.Fatalf("%+v, %v", o, err)
		}
		time.Sleep(5 * time.Millisecond)
		begun := time.Now()
		h.end()
		if took := time.Since(begun); took != 3*time.Second {
			t.Fatalf("the stop took %v", took)
		}
		p.always(fine)
		h.start(-1)
		h.settled()
		h.shows("10", `"x"`, `"y"`)
		if err := h.engine.Run(t.Context()); err == nil {
			t.Fatal("it ran twice")
		}
	})
}

// Lanes without work cost nothing.
func TestIdleLanesLeave(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{Parallel: 100}, func(t *testing.T, h *home, _ *platform) {
		for i := range 50 {
			h.wish(wished(fmt.Sprint(i), "a", "x"))
		}
		h.settled()
		time.Sleep(2 * time.Second)
		h.engine.mu.Lock()
		defer h.engine.mu.Unlock()
		if n := len(h.engine.lanes); n != 0 {
			t.Fatalf("%d lanes are still there", n)
		}
	})
}

func TestForeignMessages(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{}, func(t *testing.T, h *home, p *platform) {
		theirs, err := p.Create(t.Context(), Call{Lane: laneOf("10"), Nonce: "n", Body: quoted("m continue")})
		if err != nil {
			t.Fatal(err)
		}
		eyes := journal.Desired{Lane: laneOf("10"), Key: "eyes", Seq: 1, Thing: journal.Reaction, Target: theirs, Body: quoted("eyes")}
		h.wish(eyes)
		h.settled()
		h.shows("10", `"m continue" +"eyes"`)
		eyes.Gone, eyes.Seq, eyes.Body = true, 2, nil
		h.wish(eyes)
		h.settled()
		h.shows("10", `"m continue"`)
		for range 2 { // deleting what is gone is no failure
			h.wish(journal.Desired{Lane: laneOf("10"), Key: "away" + fmt.Sprint(len(p.called())), Target: theirs, Gone: true})
			h.settled()
		}
		h.shows("10")
		list, err := h.db.OutgoingFor(t.Context(), store.OutFilter{State: journal.Failed})
		if err != nil || len(list) != 0 {
			t.Fatal(list, err)
		}
	})
}

// Two messages may say the same: the one that is looked for stands behind the other.
func TestFindLooksBehindTheLast(t *testing.T) {
	t.Parallel()
	in(t, 0, Options{}, func(t *testing.T, h *home, p *platform) {
		p.goes(fine, notDone)
		h.wish(wished("10", "a", "ok"), wished("10", "b", "ok"))
		h.settled()
		h.shows("10", `"ok"`, `"ok"`)
		want := Probe{Lane: laneOf("10"), Key: "b", Nonce: laneOf("10").Nonce("b"), Body: quoted("ok"), After: "1"}
		if len(p.probes) != 1 {
			t.Fatalf("%+v", p.probes)
		}
		got := p.probes[0]
		if since := got.Since.Sub(p.begun); since != 10*time.Millisecond { // the first took that long
			t.Fatalf("since %v", since)
		}
		if got.Since = (time.Time{}); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}
