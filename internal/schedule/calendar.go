package schedule

import (
	"fmt"
	"strings"
	"time"

	"chorus/internal/pattern"

	"github.com/robfig/cron/v3"
)

// calendar is the five fields of cron as sets of numbers, one bit each.
type calendar struct {
	minutes, hours, days, months, weekdays uint64
	anyDay, anyWeekday                     bool // the field does not restrict anything
	everyHour                              bool
}

// starBit is how the parser marks a field that begins with a star.
const starBit = 1 << 63

var fieldsOf = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func parseCalendar(fields string) (calendar, error) {
	if strings.Contains(fields, "TZ=") {
		return calendar{}, fmt.Errorf("%q: give the time zone separately, not among the fields", fields)
	}
	if !strings.HasPrefix(fields, "@") && len(strings.Fields(fields)) != 5 {
		return calendar{}, fmt.Errorf("%q: cron has five fields: minute, hour, day of the month, month, day of the week", fields)
	}
	parsed, err := fieldsOf.Parse(sundays(fields))
	if err != nil {
		return calendar{}, fmt.Errorf("%q is not valid cron: %w", fields, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return calendar{}, fmt.Errorf("%q: write it without cron, for example: every 90 minutes", fields)
	}
	c := calendar{minutes: spec.Minute, hours: spec.Hour, days: spec.Dom, months: spec.Month, weekdays: spec.Dow,
		anyDay: spec.Dom&starBit != 0, anyWeekday: spec.Dow&starBit != 0}
	c.everyHour = spec.Hour&(1<<24-1) == 1<<24-1
	return c, nil
}

var toSunday = pattern.Lazy(`\b([0-6])-7\b`)

// sundays replaces a Sunday written as 7 with 0, because the parser only knows 0.
func sundays(fields string) string {
	parts := strings.Fields(fields)
	if len(parts) != 5 {
		return fields
	}
	day := toSunday().ReplaceAllString(parts[4], "$1-6,0")
	all := strings.Split(day, ",")
	for i, one := range all {
		if one == "7" {
			all[i] = "0"
		}
	}
	parts[4] = strings.Join(all, ",")
	return strings.Join(parts, " ")
}

// farthest is how many days ahead a matching day can be, if there is any:
// around 2100, eight years pass without a 29 February.
const farthest = 9 * 366

// next returns the first matching time after an instant, in the instant's location.
//
// A time skipped by a clock change is due right after the gap, and one that occurs twice is due the
// first time. What is due in every hour follows elapsed time: nothing is late when an hour is
// skipped, and nothing is left out when one occurs twice.
func (c calendar) next(after time.Time) time.Time {
	zone := after.Location()
	y, m, d := after.AddDate(0, 0, -1).Date() // a gap at midnight may move yesterday's time to today
	for offset := range farthest {
		day := time.Date(y, m, d+offset, 12, 0, 0, 0, time.UTC) // UTC has all days
		if !c.fits(day) {
			continue
		}
		if t := c.nextOn(day, after, zone); !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// fits reports whether a day matches. If both the day of the month and the day of the
// week are restricted, one match is enough, as in every cron.
func (c calendar) fits(day time.Time) bool {
	if c.months>>uint(day.Month())&1 == 0 {
		return false
	}
	inMonth, inWeek := c.days>>uint(day.Day())&1 == 1, c.weekdays>>uint(day.Weekday())&1 == 1
	if c.anyDay || c.anyWeekday {
		return inMonth && inWeek
	}
	return inMonth || inWeek
}

// nextOn returns the first time after an instant on one day.
func (c calendar) nextOn(day, after time.Time, zone *time.Location) time.Time {
	y, m, d := day.Date()
	if c.everyHour {
		return c.passing(instant(y, m, d, 0, 0, zone), instant(y, m, d+1, 0, 0, zone), after)
	}
	for hour := range 24 {
		if c.hours>>hour&1 == 0 {
			continue
		}
		for minute := range 60 {
			if c.minutes>>minute&1 == 0 {
				continue
			}
			if t := instant(y, m, d, hour, minute, zone); t.After(after) {
				return t
			}
		}
	}
	return time.Time{}
}

// passing checks the minutes of a day as they elapse.
func (c calendar) passing(begin, end, after time.Time) time.Time {
	t := begin
	if after.After(begin) {
		t = after.Truncate(time.Minute).Add(time.Minute)
	}
	for ; t.Before(end); t = t.Add(time.Minute) {
		if c.minutes>>t.Minute()&1 == 1 && t.After(after) {
			return t
		}
	}
	return time.Time{}
}

// instant returns when a clock in the zone first shows a time of day. If the clock was
// put forward past that time, it returns the instant of the change.
func instant(y int, m time.Month, d, hour, minute int, zone *time.Location) time.Time {
	want := time.Date(y, m, d, hour, minute, 0, 0, time.UTC)
	t := time.Date(y, m, d, hour, minute, 0, 0, zone)
	begin, end := t.ZoneBounds()
	switch shown := shows(t); {
	case shown.Before(want): // the library used the offset after the gap
		return end
	case shown.After(want):
		return begin
	case begin.IsZero():
		return t
	}
	_, offset := t.Zone()
	_, before := begin.Add(-time.Second).Zone()
	if first := t.Add(time.Duration(offset-before) * time.Second); first.Before(begin) && shows(first).Equal(want) {
		return first
	}
	return t
}

// shows returns what a clock shows at an instant, as a time that can be compared.
func shows(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
