// Package polltest waits, in tests, for what nothing rings for: another process, its files,
// rows that somebody else writes.
//
// It promises to look at once and then often, to give up after a time that is more than
// anything needs also on a busy machine, and to say then what was waited for. Whatever
// rings (a channel, a watch, a simulator's Wait) is better waited for by that.
package polltest

import (
	"testing"
	"time"
)

const (
	every    = 5 * time.Millisecond
	atLatest = time.Minute
)

// Until looks again until something is so, and ends the test if it never is.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	if !Soon(so) {
		t.Fatalf("never: %s", what)
	}
}

// Soon looks again until something is so, and reports whether it ever was.
func Soon(so func() bool) bool {
	if so() {
		return true
	}
	again, late := time.NewTicker(every), time.NewTimer(atLatest)
	defer again.Stop()
	defer late.Stop()
	for {
		select {
		case <-again.C:
			if so() {
				return true
			}
		case <-late.C:
			return so()
		}
	}
}
