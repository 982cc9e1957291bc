package outbox

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// However calls are asked for, no period of a rate holds more than it may, and the moment
// that is named is one at which a call is let through.
func TestRateHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		each := Rate{rapid.IntRange(1, 5).Draw(t, "calls"), time.Second}
		all := Rate{rapid.IntRange(1, 8).Draw(t, "all"), time.Second}
		l := limits{all: all, each: each}
		now := time.Unix(1, 0)
		made := map[string][]time.Time{}
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
			r := route{lane: laneOf(fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "lane"))), kind: create}
			if rapid.IntRange(0, 9).Draw(t, "storm") == 0 {
				l.hold(r, &RateLimited{After: 700 * time.Millisecond, Global: rapid.Bool().Draw(t, "global")}, now)
			}
			if at := l.take(r, now); !at.IsZero() {
				if !at.After(now) {
					t.Fatalf("not now, but at %v, which is now", at)
				}
				now = at
				if again := l.take(r, now); !again.IsZero() {
					t.Fatalf("named %v, and then %v", at, again)
				}
			}
			for name, rate := range map[string]Rate{"all": all, r.lane.Channel: each} {
				made[name] = append(made[name], now)
				if n := len(made[name]); n > rate.Calls && now.Sub(made[name][n-1-rate.Calls]) < rate.Per {
					t.Fatalf("%s: %d calls within %v", name, rate.Calls+1, now.Sub(made[name][n-1-rate.Calls]))
				}
			}
		}
	})
}

func TestOldBucketsLeave(t *testing.T) {
	t.Parallel()
	l := limits{each: Rate{1, time.Second}}
	now := time.Unix(1, 0)
	for i := range 10 * maxBuckets {
		now = now.Add(10 * time.Millisecond)
		l.take(route{lane: laneOf(fmt.Sprint(i)), kind: create}, now)
	}
	if n := len(l.buckets); n > maxBuckets {
		t.Fatalf("%d buckets", n)
	}
}
