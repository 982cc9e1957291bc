package outbox

import (
	"context"
	"testing"
	"time"

	"chorus/internal/journal"
)

// state is what became of a thing, and why.
func (h *home) state(channel, key string) (journal.OutState, string) {
	h.t.Helper()
	o, err := h.db.Outgoing(context.Background(), laneOf(channel), key)
	if err != nil {
		h.t.Fatal(err)
	}
	return o.State, o.Why
}

func (h *home) is(channel, key string, state journal.OutState, why Why) {
	h.t.Helper()
	if got, reason := h.state(channel, key); got != state || reason != string(why) {
		h.t.Fatalf("%s in %s is %s (%s), want %s (%s)", key, channel, got, reason, state, why)
	}
}

func of(d journal.Desired, group string) journal.Desired {
	d.Group = group
	return d
}

// A message on which the platform fails, while it makes others, is given up after minutes, with what belongs to it; what
// comes behind it is said.
func TestCursedMessageHoldsUpNobodyForEver(t *testing.T) {
	t.Parallel()
	var told []string
	in(t, 5*time.Minute, Options{NonceWindow: time.Minute, Failed: func(o journal.Outgoing) { told = append(told, o.Key+" "+o.Why) }}, func(t *testing.T, h *home, p *platform) {
		p.curses("a/0", notDone)
		h.wish(of(wished("10", "a/0", "cursed"), "a"), of(wished("10", "a/1", "its end"), "a"), wished("10", "b", "behind"))
		for range 4 { // others speak every minute
			time.Sleep(time.Minute)
			h.wish(wished("20", time.Now().String(), "elsewhere"))
		}
		h.is("10", "a/0", journal.Sending, Temporary)
		h.shows("10")
		h.settled()
		h.shows("10", `"behind"`)
		h.is("10", "a/0", journal.Failed, Broken)
		h.is("10", "a/1", journal.Failed, Broken)
		if len(told) != 1 || told[0] != "a/0 broken" {
			t.Errorf("told of %q", told)
		}
	})
}

// Where nothing else is said nobody knows whether messages can be made at all: that takes an hour here, also across restarts.
func TestCursedMessageAlone(t *testing.T) {
	t.Parallel()
	in(t, 5*time.Minute, Options{NonceWindow: time.Minute, GiveUpUnsure: time.Hour}, func(t *testing.T, h *home, p *platform) {
		p.curses("a", notDone)
		h.wish(wished("10", "a", "cursed"), wished("10", "b", "behind"))
		for range 5 {
			time.Sleep(10 * time.Minute)
			h.is("10", "a", journal.Sending, Temporary)
			h.end()
			h.start(-1)
		}
		time.Sleep(20 * time.Minute)
		h.is("10", "a", journal.Failed, Broken)
		h.shows("10", `"behind"`)
		// Who wishes it again has it tried again, for as long as the first time.
		p.curses("a", fine)
		h.wish(wished("10", "a", "not cursed"))
		h.settled()
		h.shows("10", `"behind"`, `"not cursed"`)
	})
}

// A platform that answers nothing is waited for, however long it takes, and what it failed on then does not count
// against anything when it is back.
func TestNothingIsGivenUpWhileThePlatformIsDown(t *testing.T) {
	t.Parallel()
	in(t, 5*time.Minute, Options{NonceWindow: time.Minute, GiveUpUnsure: time.Hour}, func(t *testing.T, h *home, p *platform) {
		p.curses("a", notDone) // at first only this one fails
		h.wish(wished("10", "a", "one"), wished("10", "b", "two"))
		time.Sleep(50 * time.Minute)
		p.always(notDone) // then everything, for hours
		p.silent(true)
		h.wish(wished("20", "c", "three"))
		time.Sleep(2 * time.Hour)
		h.end()
		h.start(-1)
		time.Sleep(2 * time.Hour)
		p.silent(false) // it comes back bit by bit
		time.Sleep(50 * time.Minute)
		p.always(fine)
		time.Sleep(4 * time.Minute)
		h.shows("10")
		h.shows("20", `"three"`)
		h.is("10", "a", journal.Sending, Temporary)
		p.curses("a", fine)
		h.settled()
		h.shows("10", `"one"`, `"two"`)
	})
}

// Something that is given up is looked for first: an answer of the platform's may have been wrong. If looking fails too, that ends as well.
func TestLastLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		curse mishap
		blind bool
		state journal.OutState
		why   Why
		shows []string
	}{
		"made after all":  {lost, false, journal.Sent, "", []string{`"a"`, `"b"`}},
		"not there":       {notDone, false, journal.Failed, Broken, []string{`"b"`}},
		"nobody can look": {notDone, true, journal.Failed, Broken, []string{`"b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, 48*time.Hour, Options{NonceWindow: 24 * time.Hour, GiveUpUnsure: time.Hour}, func(t *testing.T, h *home, p *platform) {
				p.curses("a", c.curse)
				if c.blind {
					p.curses("find a", notDone)
				}
				h.wish(wished("10", "a", "a"), wished("10", "b", "b"))
				time.Sleep(80 * time.Minute)
				h.settled()
				h.is("10", "a", c.state, c.why)
				h.shows("10", c.shows...)
			})
		})
	}
}

// Edits and signs end too; they hold up nobody meanwhile, and a newer text has the whole time for itself.
func TestCursedEditAndSign(t *testing.T) {
	t.Parallel()
	in(t, 5*time.Minute, Options{NonceWindow: time.Minute, GiveUpUnsure: time.Hour}, func(t *testing.T, h *home, p *platform) {
		sign := journal.Desired{Lane: laneOf("10"), Key: "sign", Thread: thread, Thing: journal.Reaction, TargetKey: "a", Body: quoted("ok")}
		h.wish(wished("10", "a", "first"))
		h.settled()
		p.curses("a", notDone)
		p.curses("sign", notDone)
		h.wish(wished("10", "a", "second"), sign, wished("10", "b", "behind"))
		time.Sleep(50 * time.Minute)
		h.shows("10", `"first"`, `"behind"`)
		h.wish(wished("10", "a", "third"))
		time.Sleep(30 * time.Minute)
		h.is("10", "sign", journal.Failed, Broken)
		h.is("10", "a", journal.Sending, Temporary)
		time.Sleep(35 * time.Minute)
		h.is("10", "a", journal.Failed, Broken)
		h.shows("10", `"first"`, `"behind"`)
	})
}

// Many who fail together ask once.
func TestWhetherItAnswersIsAskedOnceForAll(t *testing.T) {
	t.Parallel()
	in(t, 5*time.Minute, Options{NonceWindow: time.Minute, Parallel: 100}, func(t *testing.T, h *home, p *platform) {
		p.always(notDone)
		p.silent(true)
		for i := range 50 {
			h.wish(wished(time.Duration(i).String(), "a", "a"))
		}
		time.Sleep(10 * time.Minute)
		p.mu.Lock()
		if tries := len(p.calls) / 50; p.asked == 0 || p.asked > 2*tries {
			t.Errorf("asked %d times in %d tries of each", p.asked, tries)
		}
		p.mu.Unlock()
		p.always(fine)
		h.settled()
	})
}
