package schedule

import (
	"fmt"
	"time"
)

// Spec is when something is due. The zero value is never due.
type Spec struct {
	zone  *time.Location
	at    time.Time     // once
	every time.Duration // again and again, counted from at
	cron  string        // by the calendar: five fields
	rule  calendar
}

// Once is due at one instant.
func Once(at time.Time) Spec { return Spec{zone: at.Location(), at: at} }

// Every is due in equal steps of time from an instant on, which is the first.
func Every(step time.Duration, from time.Time) (Spec, error) {
	if step < shortest {
		return Spec{}, fmt.Errorf("every %s is too often: the least is every minute", step)
	}
	return Spec{zone: from.Location(), at: from, every: step}, nil
}

// shortest is the least time between two dues.
const shortest = time.Minute

// Cron is due by the calendar of a zone: minute, hour, day of the month, month and day of the week.
func Cron(fields string, zone *time.Location) (Spec, error) {
	rule, err := parseCalendar(fields)
	if err != nil {
		return Spec{}, err
	}
	return Spec{zone: zone, cron: fields, rule: rule}, nil
}

// Repeats reports whether it is due more than once.
func (s Spec) Repeats() bool { return s.every > 0 || s.cron != "" }

// Zone is the time zone by which it goes.
func (s Spec) Zone() *time.Location { return s.zone }

// Next is the first time after an instant at which it is due; the zero time: never again.
func (s Spec) Next(after time.Time) time.Time {
	switch {
	case s.cron != "":
		return s.rule.next(after.In(s.zone))
	case s.every > 0:
		if after.Before(s.at) {
			return s.at
		}
		steps := after.Sub(s.at)/s.every + 1
		return s.at.Add(steps * s.every)
	case s.at.After(after):
		return s.at
	default:
		return time.Time{}
	}
}

// First is when it is due for the first time, of what is due once or in equal steps.
func (s Spec) First() time.Time { return s.at }

// Upcoming are the next times after an instant, at most n.
func (s Spec) Upcoming(after time.Time, n int) []time.Time {
	var all []time.Time
	for len(all) < n {
		if after = s.Next(after); after.IsZero() {
			break
		}
		all = append(all, after)
	}
	return all
}

// String is the spec in a form that Parse reads: fields of cron, an instant, or steps with their beginning.
func (s Spec) String() string {
	switch {
	case s.cron != "":
		return s.cron
	case s.every > 0:
		return fmt.Sprintf("every %s from %s", s.every, s.at.Format(time.RFC3339))
	case s.at.IsZero():
		return ""
	default:
		return s.at.Format(time.RFC3339)
	}
}
