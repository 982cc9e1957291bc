package modelrouter

import (
	"testing"
	"testing/synctest"
	"time"
)

// A key whose rest ended while another was asked is free at once: the wait is not that
// of the keys that still rest.
func TestWaitForTheFirstFreeKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		p := &Pool{keys: []*keyState{{until: now.Add(time.Minute)}, {until: now.Add(30 * time.Millisecond)}, {auth: true, until: now}}}
		if got := p.wait(); got != 30*time.Millisecond {
			t.Errorf("the shorter rest is 30ms, the wait %v", got)
		}
		time.Sleep(50 * time.Millisecond)
		if got := p.wait(); got != soonest {
			t.Errorf("a key is free, the wait %v", got)
		}
	})
}
