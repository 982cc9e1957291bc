package app

import (
	"os"
	"runtime"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/permit"
)

// Warm does once what is dear the first time, beside the start of a session: the check how
// children can be waited for, the parser of commands and the rules of the usual profile.
func Warm() {
	go func() {
		if p, err := permit.Preset("standard"); err == nil {
			p.Judge([]permit.Request{{Tool: "bash", Command: "true"}}, permit.JudgeOptions{})
		}
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Release()
		}
	}()
}

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

// warmedUp is how many answers it takes until everything has been done once.
const warmedUp = 2

// Narrow leaves this process one core once it has warmed up: until then there is work for
// more.
func (a *App) Narrow() {
	ear := a.bus.Hear(chat.KindSaid)
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		defer ear.Close()
		for range warmedUp {
			select {
			case <-ear.Bell():
				ear.Take()
			case <-stop:
				return
			}
		}
		a.cores.one()
	})
	a.widen = sync.OnceFunc(func() {
		close(stop)
		done.Wait()
		a.cores.restore()
	})
}
