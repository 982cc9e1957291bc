package polltest

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSoon(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration // when it is so
		want  bool
		took  time.Duration
	}{
		"at once":          {0, true, 0},
		"a little later":   {7 * time.Millisecond, true, 2 * every},
		"never":            {time.Hour, false, atLatest},
		"at the last":      {atLatest, true, atLatest},
		"just before that": {atLatest - every, true, atLatest - every},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got := Soon(func() bool { return time.Since(began) >= c.after })
				if took := time.Since(began); got != c.want || took != c.took {
					t.Errorf("%v after %s, want %v after %s", got, took, c.want, c.took)
				}
			})
		})
	}
}

// witness hears what a test would say, and lets it go on.
type witness struct {
	testing.TB
	said string
}

func (w *witness) Helper() {}

func (w *witness) Fatalf(format string, args ...any) { w.said = format }

func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &witness{TB: t}
		if Until(w, "so", func() bool { return true }); w.said != "" {
			t.Errorf("it is so, and the test ends with %q", w.said)
		}
		if Until(w, "so", func() bool { return false }); w.said == "" {
			t.Error("it never is so, and nobody says it")
		}
	})
}
