package bwrap

import (
	"slices"
	"sync"
	"time"
)

// A sandbox stays up after a command for the next one, because starting it takes far longer than most
// commands. The next command finds nothing of the last one, and what the sandbox depends on is compared
// before each.

const (
	idleTime = 2 * time.Minute // then it is taken down
	maxIdle  = 4               // for one place
	maxAll   = 128             // for all places
)

// pool keeps sandboxes that wait for a command.
type pool struct {
	mu      sync.Mutex
	idle    map[string][]*instance // by place
	count   int
	closed  bool
	closing sync.WaitGroup
}

// get returns a sandbox of the place with this key, or nil. It takes
// down those of the place that no longer match.
func (p *pool) get(place, key string) *instance {
	for {
		i := p.take(place, key)
		if i == nil || i.usable() {
			return i
		}
		i.close()
	}
}

// wants reports whether a sandbox started before there is a command for
// it could be kept: no suitable one is waiting.
func (p *pool) wants(place, key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := slices.ContainsFunc(p.idle[place], func(i *instance) bool { return i.key == key })
	return place != "" && !waits && !p.closed && len(p.idle[place]) < maxIdle && p.count < maxAll
}

// take returns a sandbox of the place that may not be clean yet, and takes down those with another key.
func (p *pool) take(place, key string) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *instance
	for _, i := range slices.Clone(p.idle[place]) {
		switch {
		case i.key != key:
			p.remove(place, i)
			p.closing.Go(i.close)
		case found == nil:
			p.remove(place, i)
			i.stop.Stop()
			found = i
		}
	}
	return found
}

// put keeps a sandbox for the next command, or takes it down if it cannot be
// kept. Meanwhile the sandbox removes what its command left.
func (p *pool) put(place string, i *instance) {
	p.keep(place, i, func() {
		i.cleaned = make(chan struct{})
		p.closing.Go(func() {
			if !i.waitCleaned() {
				p.expire(place, i)
			}
		})
	})
}

// putNew keeps a sandbox that has had no command yet.
func (p *pool) putNew(place string, i *instance) {
	p.keep(place, i, func() {
		i.cleaned = make(chan struct{})
		close(i.cleaned)
	})
}

func (p *pool) keep(place string, i *instance, clean func()) {
	p.mu.Lock()
	if keep := place != "" && !i.unclean && !p.closed && len(p.idle[place]) < maxIdle && p.count < maxAll; !keep {
		p.mu.Unlock()
		i.close()
		return
	}
	defer p.mu.Unlock()
	if p.idle == nil {
		p.idle = map[string][]*instance{}
	}
	p.idle[place] = append(p.idle[place], i)
	p.count++
	i.stop = time.AfterFunc(idleTime, func() { p.expire(place, i) })
	clean()
}

// expire takes down an unused sandbox, unless somebody is just using it.
func (p *pool) expire(place string, i *instance) {
	p.mu.Lock()
	waits := slices.Contains(p.idle[place], i)
	if waits {
		p.remove(place, i)
		p.closing.Add(1)
	}
	p.mu.Unlock()
	if waits {
		defer p.closing.Done()
		i.close()
	}
}

// remove forgets an idle sandbox. The caller holds the lock.
func (p *pool) remove(place string, i *instance) {
	left := slices.DeleteFunc(p.idle[place], func(other *instance) bool { return other == i })
	p.count--
	if len(left) == 0 {
		delete(p.idle, place)
		return
	}
	p.idle[place] = left
}

// close takes down all sandboxes and waits for that.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for place, list := range p.idle {
		for _, i := range list {
			p.closing.Go(i.close)
		}
		delete(p.idle, place)
	}
	p.count = 0
	p.mu.Unlock()
	p.closing.Wait()
}
