package peernotify

import (
	"sync"
	"sync/atomic"
	"time"
)

// Reachable is a way to notify that knows whether it currently works.
type Reachable interface {
	Peers
	Reachable() bool
}

// away is the topic with which a node says, over the second way, that it cannot be reached over the first.
const away = Topic("notifications-away")

// fallback reaches peers in two ways.
type fallback struct {
	first  Reachable
	second Peers
	every  time.Duration // interval of checks of the first way
	until  atomic.Int64  // some peer is known to be unreachable over the first way until then, in Unix nanoseconds
	stop   chan struct{}
	close  sync.Once
	work   sync.WaitGroup
}

// lookEvery is how often a node that is cut off from the first way
// says so. This is believed three times as long.
const lookEvery = time.Second

// Fallback returns peers that are notified over the first way while all of them can be reached, and
// over the second way too while one says that it cannot. Closing it closes both.
func Fallback(first Reachable, second Peers) Peers { return newFallback(first, second, lookEvery) }

func newFallback(first Reachable, second Peers, every time.Duration) *fallback {
	f := &fallback{first: first, second: second, every: every, stop: make(chan struct{})}
	f.work.Go(f.watch)
	return f
}

// watch announces that the first way does not work here, as long as it does not.
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
	f.first.Notify(topic) // if it does not work now, this is sent when it does
	if !f.first.Reachable() || time.Now().UnixNano() < f.until.Load() {
		f.second.Notify(topic)
	}
}

// Subscribe receives from both ways. A notification that arrives twice only costs a check.
func (f *fallback) Subscribe() (*Subscription, error) {
	one, err := f.first.Subscribe()
	if err != nil {
		return nil, err
	}
	two, err := f.second.Subscribe()
	if err != nil {
		two = nil // the first way has to suffice
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
