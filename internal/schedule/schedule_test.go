package schedule

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the same calendar on every machine
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

const form = "2006-01-02 15:04 -0700"

func upcoming(t *testing.T, text, zoneName, after string, n int) []string {
	t.Helper()
	z := zone(t, zoneName)
	now, err := time.ParseInLocation("2006-01-02 15:04", after, z)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := Parse(text, z, now)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var all []string
	for _, at := range spec.Upcoming(now, n) {
		all = append(all, at.In(z).Format(form))
	}
	return all
}

func TestWhenTheClocksChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, spec, zone, after, want string }{
		{"what the gap skips is due right after it", "30 2 * * *", "Europe/Berlin", "2026-03-28 00:00", "2026-03-28 02:30 +0100|2026-03-29 03:00 +0200|2026-03-30 02:30 +0200"},
		{"several that it skips are due together, once", "*/20 2 * * *", "Europe/Berlin", "2026-03-28 02:40", "2026-03-29 03:00 +0200|2026-03-30 02:00 +0200"},
		{"what comes twice is due the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 02:30 +0200|2026-10-26 02:30 +0100"},
		{"what is due each hour goes on through the gap", "0 * * * *", "Europe/Berlin", "2026-03-29 00:30", "2026-03-29 01:00 +0100|2026-03-29 03:00 +0200|2026-03-29 04:00 +0200"},
		{"and in both hours that are called alike", "0 * * * *", "Europe/Berlin", "2026-10-25 01:30", "2026-10-25 02:00 +0200|2026-10-25 02:00 +0100|2026-10-25 03:00 +0100"},
		{"New York", "0 2 * * *", "America/New_York", "2026-03-07 12:00", "2026-03-08 03:00 -0400|2026-03-09 02:00 -0400"},
		{"half an hour on Lord Howe", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", "2026-10-04 02:30 +1100|2026-10-05 02:15 +1100"},
		{"a midnight that does not exist", "0 0 * * *", "Africa/Cairo", "2026-04-23 12:00", "2026-04-24 01:00 +0300|2026-04-25 00:00 +0300"},
		{"a day that does not exist", "0 9 * * *", "Pacific/Apia", "2011-12-29 12:00", "2011-12-31 00:00 +1400|2011-12-31 09:00 +1400"},
		{"leap days", "0 12 29 2 *", "UTC", "2096-03-01 00:00", "2104-02-29 12:00 +0000"},
		{"either day is enough, as in every cron", "0 0 13 * 5", "UTC", "2026-11-01 00:00", "2026-11-06 00:00 +0000|2026-11-13 00:00 +0000|2026-11-20 00:00 +0000"},
		{"Sunday is 7 too", "0 0 * * 6-7", "UTC", "2026-11-20 12:00", "2026-11-21 00:00 +0000|2026-11-22 00:00 +0000|2026-11-28 00:00 +0000"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			want := strings.Split(c.want, "|")
			if got := upcoming(t, c.spec, c.zone, c.after, len(want)); !slices.Equal(got, want) {
				t.Errorf("%s in %s:\n got %q\nwant %q", c.spec, c.zone, got, want)
			}
		})
	}
}

// Over years, each wall-clock time that a rule names is kept exactly once on each of its days, whatever the zone does.
func TestEachDayIsKeptOnce(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 2))
	zones := []string{"Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata", "Pacific/Apia", "America/Havana", "UTC"}
	for range 60 {
		z := zone(t, zones[dice.IntN(len(zones))])
		hour, minute := dice.IntN(24), dice.IntN(60)
		spec := mustCron(t, strconv.Itoa(minute)+" "+strconv.Itoa(hour)+" * * *", z)
		start := time.Date(2008+dice.IntN(15), 1, 1, 0, 0, 0, 0, z)
		last, days := time.Time{}, 0
		for at := spec.Next(start.Add(-time.Second)); at.Before(start.AddDate(3, 0, 0)); at = spec.Next(at) {
			if !at.After(last) {
				t.Fatalf("%v %s: %v after %v", spec, z, at, last)
			}
			if shown := at.In(z); shown.Hour() != hour || shown.Minute() != minute {
				if begin, _ := shown.ZoneBounds(); !begin.Equal(at) {
					t.Fatalf("%v %s: %v is neither the time nor the end of a gap", spec, z, shown)
				}
			}
			last = at
			days++
		}
		want := int(time.Date(start.Year()+3, 1, 1, 0, 0, 0, 0, time.UTC).Sub(time.Date(start.Year(), 1, 1, 0, 0, 0, 0, time.UTC)).Hours() / 24)
		if days != want && days != want-1 && days != want+1 { // the first or last may lie beyond the edge
			t.Errorf("%v in %s from %d: kept %d times in %d days", spec, z, start.Year(), days, want)
		}
	}
}

// What the rule finds is what looking at every minute of two years finds, where the zone has no changes.
func TestAgainstEveryMinute(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(3, 4))
	number := func(low, high int) string {
		n := low + dice.IntN(high-low+1)
		switch dice.IntN(4) {
		case 0:
			return "*"
		case 1:
			return "*/" + strconv.Itoa(2+dice.IntN(7))
		case 2:
			return strconv.Itoa(n) + "," + strconv.Itoa(low+dice.IntN(high-low+1))
		default:
			return strconv.Itoa(n)
		}
	}
	for range 12 {
		text := strings.Join([]string{number(0, 59), number(0, 23), number(1, 28), number(1, 12), number(0, 6)}, " ")
		spec := mustCron(t, text, time.UTC)
		now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		due := spec.Next(now)
		for minute := range 2 * 365 * 24 * 60 {
			at := now.Add(time.Duration(minute+1) * time.Minute)
			r := spec.rule
			fits := r.minutes>>at.Minute()&1 == 1 && r.hours>>at.Hour()&1 == 1 && r.fits(at)
			if fits != at.Equal(due) {
				t.Fatalf("%s: %v fits: %t, due is %v", text, at, fits, due)
			}
			if fits {
				due = spec.Next(at)
			}
		}
	}
}

func mustCron(t *testing.T, fields string, zone *time.Location) Spec {
	t.Helper()
	spec, err := Cron(fields, zone)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// It is Tuesday, 17 November 2026, 14:05 in Berlin.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"every weekday at 9":               "0 9 * * 1-5",
		"Every weekday at 9:30am":          "30 9 * * 1-5",
		"weekdays at 17:00":                "0 17 * * 1-5",
		"every day":                        "0 9 * * *",
		"daily at noon":                    "0 12 * * *",
		"each day at 12am":                 "0 0 * * *",
		"every monday and thursday at 6pm": "0 18 * * 1,4",
		"mondays at 8":                     "0 8 * * 1",
		"every week on friday at 16":       "0 16 * * 5",
		"weekly":                           "0 9 * * 1",
		"every weekend at 10":              "0 10 * * 0,6",
		"on the 1st of every month at 8":   "0 8 1 * *",
		"every month on the 15th at 7:05":  "5 7 15 * *",
		"monthly":                          "0 9 1 * *",
		"hourly":                           "0 * * * *",
		"every minute":                     "* * * * *",
		"every 15 minutes":                 "*/15 * * * *",
		"every half an hour":               "*/30 * * * *",
		"every 2 hours":                    "0 */2 * * *",
		"every 7 minutes":                  "every 7m0s from 2026-11-17T14:12:00+01:00",
		"every 90 minutes":                 "every 1h30m0s from 2026-11-17T15:35:00+01:00",
		"every other day":                  "every 48h0m0s from 2026-11-19T14:05:00+01:00",
		"@daily":                           "@daily",
		"in 20 minutes":                    "2026-11-17T14:25:00+01:00",
		"in an hour":                       "2026-11-17T15:05:00+01:00",
		"in 90s":                           "2026-11-17T14:06:30+01:00",
		"tomorrow at 9":                    "2026-11-18T09:00:00+01:00",
		"tomorrow":                         "2026-11-18T09:00:00+01:00",
		"today at 23:59":                   "2026-11-17T23:59:00+01:00",
		"at 15":                            "2026-11-17T15:00:00+01:00",
		"at 9":                             "2026-11-18T09:00:00+01:00",
		"9pm":                              "2026-11-17T21:00:00+01:00",
		"next friday at 10am":              "2026-11-20T10:00:00+01:00",
		"on tuesday at 10":                 "2026-11-24T10:00:00+01:00",
		"friday":                           "2026-11-20T09:00:00+01:00",
		"2026-12-24 18:00":                 "2026-12-24T18:00:00+01:00",
		"2026-12-24T18:00:00":              "2026-12-24T18:00:00+01:00",
		"2026-12-24T18:00:00Z":             "2026-12-24T18:00:00Z",
		"0 9 * * MON-FRI":                  "0 9 * * MON-FRI",
		"  0 9  * * 1-5 ":                  "0 9 * * 1-5",
	} {
		spec, err := Parse(text, zone(t, "Europe/Berlin"), tuesday(t))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := spec.String(); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func tuesday(t testing.TB) time.Time {
	return time.Date(2026, 11, 17, 14, 5, 0, 0, zone(t, "Europe/Berlin"))
}

func TestWhatIsNotUnderstoodIsSaid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "is not understood",
		"sometimes":              `from "sometimes" on`,
		"every blue moon":        `from "blue" on`,
		"every day at 25":        "is not understood",
		"every day at 9:5":       "is not understood",
		"every day at 13pm":      "is not understood",
		"every 10 seconds":       "is not understood",
		"every 10s":              "too often",
		"in":                     "is not understood",
		"every":                  "is not understood",
		"2020-01-01 09:00":       "is in the past",
		"today at 9":             "is in the past",
		"0 0 31 2 *":             "never comes",
		"0 0 30 feb *":           "never comes",
		"0 9 * *":                "five fields",
		"60 9 * * *":             "is not valid cron",
		"* * * * 8":              "is not valid cron",
		"@every 1h":              "without cron",
		"CRON_TZ=UTC 0 9 * * *":  "separately",
		"every 1e300 hours":      "is not understood",
		"every -5 minutes":       "is not understood",
		"every NaN hours":        "is not understood",
		"next at 9":              "is not understood",
		"on the 32nd at 9":       "is not understood",
		"on the 1st of may at 9": "is not understood",
	} {
		if spec, err := Parse(text, zone(t, "Europe/Berlin"), tuesday(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", text, spec, err, want)
		}
	}
	for _, name := range []string{"Europe/Atlantis", "Local", "../../etc/passwd"} {
		if _, err := Zone(name); err == nil || !strings.Contains(err.Error(), "Europe/Berlin") {
			t.Errorf("zone %q: %v", name, err)
		}
	}
}

func TestMissed(t *testing.T) {
	t.Parallel()
	z := zone(t, "Europe/Berlin")
	clock := func(text string) time.Time {
		at, err := time.ParseInLocation("2006-01-02 15:04", text, z)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, c := range []struct {
		what, spec, due, now string
		how                  CatchUp
		keep, next           string
	}{
		{"not yet", "0 9 * * *", "2026-11-17 09:00", "2026-11-17 08:59", Last, "", "2026-11-17 09:00"},
		{"in time", "0 9 * * *", "2026-11-17 09:00", "2026-11-17 09:00", Skip, "2026-11-17 09:00", "2026-11-18 09:00"},
		{"three days late", "0 9 * * *", "2026-11-14 09:00", "2026-11-17 12:00", Skip, "", "2026-11-18 09:00"},
		{"three days late", "0 9 * * *", "2026-11-14 09:00", "2026-11-17 12:00", Last, "2026-11-17 09:00", "2026-11-18 09:00"},
		{"three days late", "0 9 * * *", "2026-11-15 09:00", "2026-11-17 12:00", All, "2026-11-15 09:00|2026-11-16 09:00|2026-11-17 09:00", "2026-11-18 09:00"},
		{"late, and the newest in time", "0 9 * * *", "2026-11-14 09:00", "2026-11-17 09:00", Skip, "2026-11-17 09:00", "2026-11-18 09:00"},
		{"once, late", "2026-11-17 09:00", "2026-11-17 09:00", "2026-12-17 09:00", Last, "2026-11-17 09:00", ""},
		{"once, and late is too late", "2026-11-17 09:00", "2026-11-17 09:00", "2026-12-17 09:00", Skip, "", ""},
		{"a rule that was changed keeps what it promised", "0 10 * * *", "2026-11-17 09:00", "2026-11-17 09:30", Last, "2026-11-17 09:00", "2026-11-17 10:00"},
		{"ten years of minutes", "* * * * *", "2016-11-17 09:00", "2026-11-17 09:00", Last, "2026-11-17 09:00", "2026-11-17 09:01"},
	} {
		spec, err := parse(c.spec, z, clock("2026-01-01 00:00"))
		if err != nil {
			t.Fatal(err)
		}
		keep, next := spec.Missed(clock(c.due), clock(c.now), c.how)
		var got []string
		for _, at := range keep {
			got = append(got, at.In(z).Format("2006-01-02 15:04"))
		}
		shown := ""
		if !next.IsZero() {
			shown = next.In(z).Format("2006-01-02 15:04")
		}
		if strings.Join(got, "|") != c.keep || shown != c.next {
			t.Errorf("%s, %s: keeps %q, next %q; want %q, %q", c.what, c.how, got, shown, c.keep, c.next)
		}
	}
	everyMinute := mustCron(t, "* * * * *", z)
	if keep, _ := everyMinute.Missed(clock("2016-01-01 00:00"), clock("2026-01-01 00:00"), All); len(keep) != mostMissed || !keep[mostMissed-1].Equal(clock("2026-01-01 00:00")) {
		t.Errorf("of ten years of minutes %d are kept, the last %v", len(keep), keep[len(keep)-1])
	}
}

// However often, and with whatever clock, it is asked: no time is kept twice.
func TestNoTimeIsKeptTwice(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(5, 6))
	for _, how := range []CatchUp{Skip, Last, All} {
		for _, text := range []string{"*/7 * * * *", "30 2 * * *", "every 90 minutes", "0 9 * * 1-5"} {
			z := zone(t, "Europe/Berlin")
			now := time.Date(2026, 3, 20, 0, 0, 0, 0, z)
			spec, err := Parse(text, z, now)
			if err != nil {
				t.Fatal(err)
			}
			seen, due := map[int64]bool{}, spec.Next(now)
			for range 2000 {
				now = now.Add(time.Duration(dice.IntN(240)-40) * time.Minute) // sometimes back
				keep, next := spec.Missed(due, now, how)
				for _, at := range keep {
					if seen[at.Unix()] {
						t.Fatalf("%s, %s: %v twice", text, how, at)
					}
					seen[at.Unix()] = true
				}
				if next.Before(due) {
					t.Fatalf("%s, %s: due went back from %v to %v", text, how, due, next)
				}
				due = next
			}
		}
	}
}

func TestJitterIsTheSameAgain(t *testing.T) {
	t.Parallel()
	at, different := tuesday(t), map[time.Duration]bool{}
	for i := range 100 {
		j := jitter(strconv.Itoa(i), at, time.Minute)
		if j < 0 || j >= time.Minute || j != jitter(strconv.Itoa(i), at, time.Minute) {
			t.Fatal(j)
		}
		different[j] = true
	}
	if len(different) < 90 || jitter("a", at, 0) != 0 {
		t.Errorf("%d different ones", len(different))
	}
}

// What is understood has a next time, and is understood again as it is written.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"every weekday at 9", "0 9 * * 1-5", "in 20 minutes", "every 7 minutes", "2026-12-24 18:00", "on the 1st of every month at 8", "*/0 * * * *", "every every day"} {
		f.Add(text)
	}
	z, now := zone(f, "Europe/Berlin"), tuesday(f)
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := Parse(text, z, now)
		if err != nil {
			return
		}
		next := spec.Next(now)
		if !next.After(now) {
			t.Fatalf("%q is next due %v", text, next)
		}
		again, err := Parse(spec.String(), z, now)
		if err != nil || !again.Next(now).Equal(next.Truncate(time.Second)) {
			t.Fatalf("%q, written as %q, is %v, %v; want %v", text, spec, again, err, next)
		}
	})
}
