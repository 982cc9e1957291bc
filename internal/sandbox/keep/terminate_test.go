package keep

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/sandbox"
)

// dying is a command whose processes run for some looks.
type dying struct {
	sandbox.Kept
	looks  int
	killed bool
}

func (d *dying) Terminate() int {
	if d.looks == 0 {
		return 0
	}
	d.looks--
	return 1
}

func (d *dying) Kill() { d.killed = true }

// A command that ended when it was asked to is not said to be killed because its sandbox was slow to report it; one that runs on is
// killed, and so is one of which nothing can be found.
func TestTerminate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		looks  int
		end    time.Duration // when the end is known
		killed bool
		after  time.Duration
	}{
		"ended, and known late":   {looks: 3, end: 4 * time.Second, after: 4 * time.Second},
		"ended, and never known":  {looks: 3, end: time.Hour, killed: true, after: graceTime},
		"runs on":                 {looks: 1 << 20, end: time.Hour, killed: true, after: graceTime},
		"found by nobody":         {end: time.Hour, killed: true, after: unseenTime},
		"over before it is asked": {end: time.Millisecond, after: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				program := &dying{looks: c.looks}
				k := &keeper{program: program}
				ctx, cancel := context.WithTimeout(t.Context(), c.end)
				defer cancel()
				began := time.Now()
				k.terminate(ctx)
				if program.killed != c.killed || k.forced.Load() != c.killed || time.Since(began) != c.after {
					t.Errorf("killed %v, forced %v after %s; want %v after %s", program.killed, k.forced.Load(), time.Since(began), c.killed, c.after)
				}
			})
		})
	}
}
