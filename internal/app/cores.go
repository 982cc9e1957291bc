package app

import (
	"runtime"
	"sync"

	"chorus/internal/chat"
)

// cores is over how many cores the goroutines of this process are spread. A session of one
// prompt does one thing after another: there, waking a second core for every step costs
// more than it brings. What really is work for many says so.
type cores struct {
	mu   sync.Mutex
	all  int // as it was; 0: still is
	wide int // how many want them all
}

// one leaves a single core, but to those who ask for more.
func (c *cores) one() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := runtime.GOMAXPROCS(0); c.all == 0 && n > 1 {
		c.all = n
		c.set()
	}
}

// spread gives all of them until back is called.
func (c *cores) spread() (back func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wide++
	c.set()
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.wide--
		c.set()
	})
}

// restore is for whoever outlives the session.
func (c *cores) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all > 0 {
		runtime.GOMAXPROCS(c.all)
		c.all = 0
	}
}

// set does what holds now; the caller has the lock.
func (c *cores) set() {
	switch {
	case c.all == 0:
	case c.wide == 0:
		runtime.GOMAXPROCS(1)
	case c.wide == 1:
		runtime.GOMAXPROCS(c.all)
	}
}

// Narrow leaves this process one core from the first answer on: the start is work for many.
func (a *App) Narrow() {
	ear := a.bus.Hear(chat.KindSaid)
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		defer ear.Close()
		select {
		case <-ear.Bell():
			a.cores.one()
		case <-stop:
		}
	})
	a.widen = sync.OnceFunc(func() {
		close(stop)
		done.Wait()
		a.cores.restore()
	})
}
