package schedule

import (
	"fmt"
	"hash/fnv"
	"time"
)

// CatchUp says what happens to times that passed while nobody could keep them.
type CatchUp string

// The ways to catch up.
const (
	Skip CatchUp = "skip" // they are left out
	Last CatchUp = "once" // the newest is kept, late
	All  CatchUp = "all"  // each is kept, late, the newest hundred
)

const (
	// punctual is how late a time may be kept that is not to be caught up with.
	punctual = time.Minute
	// mostMissed is how many of the missed are caught up with.
	mostMissed = 100
)

// Missed says which times are to be kept now, and what is due next, when due was the next time that was known.
// The next one is always after now, so that each time is kept at most once, whatever the clock does.
func (s Spec) Missed(due, now time.Time, how CatchUp) (keep []time.Time, next time.Time) {
	if due.IsZero() || now.Before(due) {
		return nil, due
	}
	next = s.Next(now)
	if how == All {
		return s.newest(due, now, mostMissed), next
	}
	newest := s.newest(due, now, 1)
	if how == Skip && now.Sub(newest[0]) > punctual {
		return nil, next
	}
	return newest, next
}

// newest are the last n times from due until now. Years of minutes are not walked through: what lies far behind is
// looked for from nearer and nearer.
func (s Spec) newest(due, now time.Time, n int) []time.Time {
	from := due.Add(-time.Nanosecond)
	for back := time.Hour; back < now.Sub(due); back *= 4 {
		if near := s.Upcoming(now.Add(-back), n); len(near) == n && !near[n-1].After(now) {
			from = now.Add(-back)
			break
		}
	}
	var all []time.Time
	if from.Before(due) && s.Next(from).After(due) {
		all = append(all, due) // what was promised holds, though the rule has changed since
	}
	for t := s.Next(from); !t.IsZero() && !t.After(now); t = s.Next(t) {
		if all = append(all, t); len(all) > n {
			all = all[1:]
		}
	}
	if len(all) == 0 {
		return []time.Time{due}
	}
	return all
}

// jitter is how much later than due something begins, at most as much as is allowed: the same for the same schedule
// and time, so that a restart changes nothing.
func jitter(schedule string, due time.Time, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", schedule, due.Unix())
	return time.Duration(h.Sum64() % uint64(most))
}
