package app

import (
	"runtime"
	"testing"
)

// Not beside others: the number of cores is everybody's.
func TestCores(t *testing.T) {
	all := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(all)
	var c cores
	has := func(want int, when string) {
		t.Helper()
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("%s: %d cores, not %d", when, got, want)
		}
	}
	c.spread()()
	has(4, "before it was narrowed")
	c.one()
	has(1, "narrowed")
	first, second := c.spread(), c.spread()
	has(4, "while two work")
	first()
	first()
	has(4, "while one works")
	second()
	has(1, "when nobody does")
	c.restore()
	has(4, "restored")
}
