package window

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// aged is a talk whose messages have these ages in hours, the oldest first.
func aged(hours ...float64) []Item {
	items := talk(len(hours))
	for i, h := range hours {
		items[i].Age = time.Duration(h * float64(time.Hour))
	}
	return items
}

// Messages of any age went to the model: there was no window of time (24 hours in the
// document, since the last clear).
func TestBuildByAge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		items []Item
		age   time.Duration
		from  int
	}{
		{"A50 a day ago and an hour ago", aged(25, 1, 0), 24 * time.Hour, 1},
		{"nothing is too old", aged(24, 23, 0), 24 * time.Hour, 0},
		{"what expires within the hour goes along", aged(24.1, 23.5, 22.9, 0), 24 * time.Hour, 2},
		{"no limit", aged(1000, 0), 0, 0},
		{"never empty", aged(30, 29), 24 * time.Hour, 1},
		{"a single message stays", aged(30), 24 * time.Hour, 0},
		{"a fresh summary of old words goes with them", aged(2, 30, 1, 0), 24 * time.Hour, 2},
		{"a result does not lose its call", with(aged(30, 25, 1, 0), func(it []Item) { it[1].Own, it[2].Result = true, true }), 24 * time.Hour, 3},
		{"own messages in a row are one", with(aged(30, 25, 1, 0), func(it []Item) { it[1].Own, it[2].Own = true, true }), 24 * time.Hour, 3},
		{"nobody spoke", nil, time.Hour, 0},
	} {
		got := Build(c.items, 0, Limits{Age: c.age})
		if got.From != c.from || got.Rolled != (c.from > 0) || got.Rolled != (got.Because != "") {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := Build(aged(30, 29, 1), 0, Limits{Age: 24 * time.Hour}).Because; got != "2 messages are older than 24h" {
		t.Error(got)
	}
	// The stricter of two limits holds.
	if got := Build(aged(30, 2, 1, 0), 50, Limits{Age: 24 * time.Hour, Messages: 2}); got.From != 2 || strings.Contains(got.Because, "24h") {
		t.Errorf("%+v", got)
	}
}

func TestPeriod(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{24 * time.Hour: "24h", 90 * time.Minute: "1h30m", 45 * time.Second: "45s", 10 * time.Minute: "10m", time.Hour + time.Second: "1h0m1s"} {
		if got := Period(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// TestAgeMovesInSteps: in a conversation that never rests, nothing too old is shown, nothing
// young is left out, and the beginning moves at most once in a 24th of the window.
func TestAgeMovesInSteps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		age := time.Duration(rapid.IntRange(24, 48).Draw(t, "hours")) * time.Hour
		var said []time.Duration // when, since the beginning
		var now, moved time.Duration
		first := 0
		for range 300 {
			now += time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes")) * time.Minute
			said = append(said, now)
			items := make([]Item, len(said)-first)
			for i := range items {
				items[i] = Item{Size: 1, Age: now - said[first+i]}
			}
			p := Build(items, 0, Limits{Age: age})
			if p.Rolled && moved > 0 && now-moved < age/ageStep {
				t.Fatalf("moved at %v and at %v", moved, now)
			}
			if p.Rolled {
				moved = now
			}
			if p.From > 0 && now-said[first+p.From-1] <= age-age/ageStep {
				t.Fatalf("left out %v", now-said[first+p.From-1])
			}
			if first += p.From; now-said[first] > age {
				t.Fatalf("shows %v", now-said[first])
			}
		}
	})
}
