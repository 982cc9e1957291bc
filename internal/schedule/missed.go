package schedule

import (
	"fmt"
	"hash/fnv"
	"time"
)

// CatchUp says what happens to times that passed while no process was running.
type CatchUp string

// The ways to catch up.
const (
	Skip CatchUp = "skip" // they are left out
	Last CatchUp = "once" // the newest one is carried out late
	All  CatchUp = "all"  // each is carried out late, at most the newest hundred
)

const (
	// punctual is how late a time that is not to be caught up may still be carried out.
	punctual = time.Minute
	// mostMissed is the maximum number of missed times that are caught up.
	mostMissed = 100
)

// Missed returns which times are to be carried out now, and what is due next, given the
// next due time known before. The next one is always after now, so that each time is
// carried out at most once, whatever the clock does.
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

// newest returns the last n times from due until now. It does not go through years of
// minutes, but searches from closer and closer starting points.
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
		all = append(all, due) // it was announced, so it is carried out even if the rule has changed since
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

// jitter returns how much later than due something begins, at most most. It is always the
// same for the same schedule and time, so a restart changes nothing.
func jitter(schedule string, due time.Time, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", schedule, due.Unix())
	return time.Duration(h.Sum64() % uint64(most))
}
