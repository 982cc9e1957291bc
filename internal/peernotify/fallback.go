package peernotify

import (
	"sync"
	"sync/atomic"
	"time"
)

// Reachable is a way to notify that knows whether it works now.
type Reachable interface {
	Peers
	Reachable() bool
}

// away is the topic under which a node says, the second way, that it cannot be reached the first way.
const away = Topic("notifications-away")

// fallback are peers that are reached in two ways.
type fallback struct {
	first  Reachable
	second Peers
	every  time.Duration // between looks at the first way
	until  atomic.Int64  // somebody is known to be away from the first way until then, in nanoseconds of Unix time
	stop   chan struct{}
	close  sync.Once
	work   sync.WaitGroup
}

// lookEvery is how often a node that is away from the first way says so; it is believed three times as long.
const lookEvery = time.Second

// Fallback are peers that are notified the first way while all of them can be, and also the second while one says
// that it cannot. It closes both.
func Fallback(first Reachable, second Peers) Peers { return newFallback(first, second, lookEvery) }

func newFallback(first Reachable, second Peers, every time.Duration) *fallback {
	f := &fallback{first: first, second: second, every: every, stop: make(chan struct{})}
	f.work.Go(f.watch)
	return f
}

// watch says that the first way does not work here, as long as it does not.
func (f *fallback) watch() {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		if !f.first.Reachable() {
			f.second.Notify(away)
		}
		select {
		case <-f.stop:
			return
		case <-tick.C:
		}
	}
}

func (f *fallback) Notify(topic Topic) {
	f.first.Notify(topic) // where it does not work now, it goes out when it does
	if !f.first.Reachable() || time.Now().UnixNano() < f.until.Load() {
		f.second.Notify(topic)
	}
}

// Subscribe receives both ways; a notification that comes twice is a look more.
func (f *fallback) Subscribe() (*Subscription, error) {
	one, err := f.first.Subscribe()
	if err != nil {
		return nil, err
	}
	two, err := f.second.Subscribe()
	if err != nil {
		two = nil // the first way has to do
	}
	ended := make(chan struct{})
	var joined sync.WaitGroup
	s := NewSubscription(sync.OnceFunc(func() {
		close(ended)
		joined.Wait()
		one.Close()
		two.Close()
	}))
	for _, from := range []*Subscription{one, two} {
		joined.Go(func() { f.join(from, s, ended) })
	}
	return s, nil
}

func (f *fallback) join(from, to *Subscription, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-from.Woken():
		}
		topics, all := from.Take()
		if all {
			to.PutAll()
		}
		for _, topic := range topics {
			if topic == away {
				f.until.Store(time.Now().Add(3 * f.every).UnixNano())
				continue
			}
			to.Put(topic)
		}
	}
}

func (f *fallback) Close() {
	f.close.Do(func() { close(f.stop) })
	f.work.Wait()
	f.first.Close()
	f.second.Close()
}
