// Package polltest lets tests wait for things that send no signal: another
// process, its files, rows that somebody else writes.
//
// It checks at once and then often. It gives up after a time that is more than enough
// even on a busy machine, and then says what it waited for. Use it only where there is
// no signal (a channel, a watch, a simulator's Wait).
package polltest

import (
	"testing"
	"time"
)

const (
	every    = 5 * time.Millisecond
	atLatest = time.Minute
)

// Until checks repeatedly until so returns true, and fails the test if it never does.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	if !Soon(so) {
		t.Fatalf("never: %s", what)
	}
}

// Soon checks repeatedly until so returns true, and reports whether it ever did.
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
