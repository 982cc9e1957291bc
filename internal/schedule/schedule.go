package schedule

import (
	"fmt"
	"time"
)

// Spec says when something is due. The zero value is never due.
type Spec struct {
	zone  *time.Location
	at    time.Time     // once
	every time.Duration // repeatedly, counted from at
	cron  string        // by the calendar: five fields
	rule  calendar
}

// Once returns a Spec that is due at one instant.
func Once(at time.Time) Spec { return Spec{zone: at.Location(), at: at} }

// Every returns a Spec that is due in equal steps of time, the first at from.
func Every(step time.Duration, from time.Time) (Spec, error) {
	if step < shortest {
		return Spec{}, fmt.Errorf("every %s is too often: the shortest interval is a minute", step)
	}
	return Spec{zone: from.Location(), at: from, every: step}, nil
}

// shortest is the shortest time between two due times.
const shortest = time.Minute

// Cron returns a Spec that is due by the calendar of a zone: minute,
// hour, day of the month, month and day of the week.
func Cron(fields string, zone *time.Location) (Spec, error) {
	rule, err := parseCalendar(fields)
	if err != nil {
		return Spec{}, err
	}
	return Spec{zone: zone, cron: fields, rule: rule}, nil
}

// Repeats reports whether it is due more than once.
func (s Spec) Repeats() bool { return s.every > 0 || s.cron != "" }

// Zone returns its time zone.
func (s Spec) Zone() *time.Location { return s.zone }

// Next returns the first due time after an instant, or zero if there is none.
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

// First returns the first due time of a Spec that is due once or in equal steps.
func (s Spec) First() time.Time { return s.at }

// Upcoming returns the next due times after an instant, at most n.
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

// String returns the Spec in a form that Parse reads: cron fields, an instant, or steps with their beginning.
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
