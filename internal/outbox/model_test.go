package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// act is one thing that happens in a life.
type act struct {
	say   string // an event; empty: only time passes
	wait  time.Duration
	steps int // how long the next process lives, should this one be dead
}

// life is everything that chance decides, so that a failing one can be made smaller.
type life struct {
	acts   []act
	faults []mishap // of the calls, in order; after the last all is well
	window time.Duration
	first  int // steps of the first process
	echoes int // how often the gateway tells of a message that was made
}

func drawLife(t *rapid.T) life {
	steps := rapid.IntRange(1, 40)
	l := life{first: steps.Draw(t, "first"), window: rapid.SampledFrom([]time.Duration{0, 5 * time.Minute}).Draw(t, "window")}
	l.echoes = rapid.IntRange(0, 2).Draw(t, "echoes")
	there := map[string]int{} // 1: said, 2: taken away
	for i := range rapid.IntRange(1, 25).Draw(t, "acts") {
		a := act{steps: steps.Draw(t, "steps"), wait: rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 40 * time.Second}).Draw(t, "wait")}
		channel := rapid.SampledFrom([]string{"10", "20"}).Draw(t, "channel")
		key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
		what := rapid.SampledFrom([]string{"w%d", "w%d", "w%d", "w%d!", "-", "~ok", "~-ok"}).Draw(t, "what")
		if strings.Contains(what, "%") {
			what = fmt.Sprintf(what, i)
		}
		// What was taken away stays away, for no platform gives a message back; and a
		// reaction or a retraction follows on something.
		if at := there[channel+key]; at == 1 || at == 0 && what[0] == 'w' {
			a.say = channel + " " + key + " " + what
			there[channel+key] = 1
			if what == "-" {
				there[channel+key] = 2
			}
		}
		l.acts = append(l.acts, a)
	}
	kinds := []mishap{fine, fine, lost, notDone, stormed, stormedAll}
	if l.window > 0 {
		kinds = append(kinds, slow) // without nonces a message that comes late comes twice
	}
	l.faults = rapid.SliceOfN(rapid.SampledFrom(kinds), 0, 40).Draw(t, "faults")
	return l
}

// expect is what the channels must show in the end, worked out without any outbox.
func expect(acts []act) map[string][]string {
	texts := map[string]string{}
	type shown struct {
		key, body string
		gone      bool
		ok        bool
	}
	channels := map[string][]*shown{}
	at := map[string]*shown{}
	for _, a := range acts {
		if a.say == "" {
			continue
		}
		d := told(texts, a.say)
		key, _, _ := strings.Cut(d.Key, "~")
		m := at[d.Lane.Channel+key]
		if d.Thing == journal.Reaction {
			m.ok = !d.Gone
			continue
		}
		if m == nil {
			m = &shown{key: key}
			at[d.Lane.Channel+key] = m
			channels[d.Lane.Channel] = append(channels[d.Lane.Channel], m)
		}
		if m.gone = d.Gone; !d.Gone {
			m.body = string(d.Body)
		}
	}
	out := map[string][]string{"10": nil, "20": nil}
	for c, list := range channels {
		for _, m := range list {
			if m.gone {
				continue
			}
			text := m.body
			if m.ok {
				text += ` +"ok"`
			}
			out[c] = append(out[c], text)
		}
	}
	return out
}

// live plays a life and says what was wrong with it.
func live(t *testing.T, l life) (deaths int, err error) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(l.window)
		p.goes(l.faults...)
		p.silent(true)         // whatever fails, fails with everything else
		window := l.window / 2 // ours is shorter than theirs, to be sure
		h := newHome(t, p, Options{NonceWindow: window, Parallel: 2, BackoffMax: 8 * time.Second,
			AllCalls: Rate{20, time.Second}, LaneCalls: Rate{5, 2 * time.Second}})
		p.echo = func(nonce, id string) {
			for range l.echoes {
				// A process that is dead or closing does not hear it.
				if _, err := h.living.Load().Echo(context.Background(), nonce, id); err != nil && !errors.Is(err, errDead) && !errors.Is(err, database.ErrClosed) {
					t.Error(err)
				}
			}
		}
		h.start(l.first)
		defer func() { h.end() }()
		for _, a := range l.acts {
			if a.say != "" {
				channel, _, _ := strings.Cut(a.say, " ")
				h.say(chat.ThreadID("talk:room:"+channel+"@main"), a.say)
			}
			time.Sleep(a.wait)
			h.revive(a.steps)
		}
		h.fuse.disarm()
		h.revive(-1)
		if err = h.settle(); err != nil {
			return
		}
		for c, want := range expect(l.acts) {
			if got := p.shows(c); !slices.Equal(got, want) {
				err = fmt.Errorf("channel %s shows\n%s\nand should show\n%s\nafter %s", c, strings.Join(got, "\n"), strings.Join(want, "\n"), strings.Join(p.called(), "; "))
			}
		}
		deaths = h.deaths
	})
	return deaths, err
}

// Whatever the platform does and whenever the process dies: every message is there once,
// with its last text, in order.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		if _, err := live(t, drawLife(r)); err != nil {
			r.Fatal(err)
		}
	})
}

// One life with everything in it, killed once at each of its steps.
func TestKillAtEveryStep(t *testing.T) {
	t.Parallel()
	stride := 1
	if raceDetector {
		stride = 23
	}
	for echoes, window := range []time.Duration{0, 5 * time.Minute} {
		l := life{window: window, echoes: 2 * echoes, acts: []act{
			{say: "10 a w1"}, {say: "10 b w2"}, {say: "10 a ~ok"}, {say: "20 c w3", wait: 3 * time.Second}, {say: "10 a w4!"},
			{say: "20 c -"}, {say: "20 d w5!", wait: 3 * time.Second}, {say: "10 a ~-ok"}, {say: "10 e w6!", wait: 3 * time.Second},
		}, faults: []mishap{fine, lost, fine, stormed, fine, fine, notDone, lost, fine, lost, stormedAll}}
		for i := range l.acts {
			l.acts[i].steps = -1
		}
		l.acts[len(l.acts)-1].wait = time.Minute
		for l.first = 1; ; l.first += stride {
			deaths, err := live(t, l)
			if err != nil {
				t.Fatalf("killed at step %d with window %v: %v", l.first, window, err)
			}
			if deaths == 0 {
				break // it came to its end before
			}
		}
		if l.first < 50 {
			t.Fatalf("only %d steps", l.first)
		}
	}
}
