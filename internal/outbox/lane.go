package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"chorus/internal/await"
	"chorus/internal/journal"
)

// action says what a row needs next.
type action string

const (
	create  action = "create"
	edit    action = "edit"
	remove  action = "delete"
	react   action = "react"
	unreact action = "unreact"
	drop    action = "drop" // never made and no longer wanted: no call needed
)

// actionOf says what a row needs. A message that may have been made must be made for
// certain before it can be deleted, because only then is its id known.
func actionOf(o journal.Outgoing) action {
	untouched := o.Have == 0 && o.Tried == 0
	switch {
	case o.Thing == journal.Reaction && o.Gone && untouched:
		return drop
	case o.Thing == journal.Reaction && o.Gone:
		return unreact
	case o.Thing == journal.Reaction:
		return react
	case o.Made() && o.Gone:
		return remove
	case o.Made():
		return edit
	case o.Gone && untouched:
		return drop
	default:
		return create
	}
}

// maxRows is how far a lane looks ahead.
const maxRows = 200

// lane is the worker of one lane. It lives while there is something to do.
// Its maps only save calls; a restart loses nothing.
type lane struct {
	e    *Engine
	id   journal.Lane
	wake chan struct{} // buffer of one

	previews map[string]json.RawMessage // under e.mu
	edited   map[string]time.Time       // when a message was last changed
	doubts   map[string]doubt
	stumbled map[string]int // consecutive failures of a message, without rate limits
	solos    map[string]*solo
	trouble  int // consecutive failures of the store
}

// doubt is an edit with an unknown outcome: it may still arrive, after a newer one.
type doubt struct {
	body string
	at   time.Time
}

// doubtFor is how long a platform may delay a call that we gave up.
const doubtFor = 30 * time.Second

func (l *lane) notify() { await.Notify(l.wake) }

// work continues until there is nothing to do or the engine stops.
func (l *lane) work(on context.Context) {
	for {
		select { // drain, then read
		case <-l.wake:
		default:
		}
		next := time.Time{}
		if on.Err() == nil {
			next = l.step(on)
		}
		if next.IsZero() && l.leave(on.Err() != nil) {
			return
		}
		l.wait(on, next)
	}
}

// leave removes the lane from the map, unless it was woken meanwhile.
func (l *lane) leave(stopping bool) bool {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	if !stopping && len(l.wake) > 0 {
		return false
	}
	delete(l.e.lanes, l.id)
	return true
}

// wait waits for the next time, a wake-up or the end.
func (l *lane) wait(on context.Context, next time.Time) {
	select {
	case <-time.After(time.Until(next)):
	case <-l.wake:
	case <-on.Done():
	}
}

// step does one thing if one is due. It returns when to check again (at
// once if that has passed), or zero if nothing is left.
func (l *lane) step(on context.Context) time.Time {
	rows, err := l.e.o.Store.OpenRows(on, l.id, maxRows)
	if err != nil {
		return l.storeTrouble(err)
	}
	now := time.Now()
	l.forget(now)
	for _, o := range rows {
		// An edit by a process that died. The results of its earlier attempts are not recorded.
		if _, known := l.doubts[o.Key]; !known && o.State == journal.Sending && actionOf(o) == edit {
			body := o.TriedBody
			if o.Attempts > 1 {
				body = nil
			}
			l.doubt(o.Key, body, now)
		}
	}
	j, next, err := l.pick(on, rows, now)
	if err == nil && j == nil {
		j, next, err = l.pickPreview(on, rows, now, next)
	}
	if err != nil {
		return l.storeTrouble(err)
	}
	if j == nil {
		return l.linger(next)
	}
	next, err = l.do(on, *j)
	if err != nil && !errors.Is(err, journal.ErrMoved) {
		return l.storeTrouble(err)
	}
	l.trouble = 0
	l.e.tell()
	return later(next, now) // never zero: check again
}

// storeTrouble waits longer after every failure.
func (l *lane) storeTrouble(err error) time.Time {
	l.trouble++
	l.e.o.Log.Warn("outbox: the store does not answer; trying again", "lane", l.id.String(), "error", err)
	return time.Now().Add(l.e.backoff(l.trouble))
}

// backoff is 1 s, doubled with every attempt up to the maximum.
func (e *Engine) backoff(attempts int) time.Duration {
	d := time.Second
	for ; attempts > 1 && d < e.o.BackoffMax; attempts-- {
		d *= 2
	}
	return min(d, e.o.BackoffMax)
}

// linger keeps the worker as long as it remembers something useful.
func (l *lane) linger(next time.Time) time.Time {
	if !next.IsZero() {
		return next
	}
	for _, at := range l.edited {
		next = later(next, at.Add(l.e.o.Pace))
	}
	for _, d := range l.doubts {
		next = later(next, d.at.Add(doubtFor))
	}
	return next
}

func (l *lane) forget(now time.Time) {
	for key, at := range l.edited {
		if !at.Add(l.e.o.Pace).After(now) {
			delete(l.edited, key)
		}
	}
	for key, d := range l.doubts {
		if !d.at.Add(doubtFor).After(now) {
			delete(l.doubts, key)
		}
	}
}

// doubt remembers an edit that may arrive at any time.
func (l *lane) doubt(key string, body json.RawMessage, now time.Time) {
	d := doubt{body: string(body), at: now}
	if old, ok := l.doubts[key]; ok && old.body != d.body {
		d.body = "" // several: it is unclear which text would be the last
	}
	l.doubts[key] = d
}

// job is what a lane does next.
type job struct {
	row     journal.Outgoing
	do      action
	id      string // the message to act on
	preview json.RawMessage
}

// pick finds the first row that is due. Messages are made in order; everything else waits only
// for its own message. If no row is due, it returns the time of the next.
func (l *lane) pick(on context.Context, rows []journal.Outgoing, now time.Time) (*job, time.Time, error) {
	var next time.Time
	making := false
	unmade := map[string]bool{}
	for _, o := range rows {
		j := job{row: o, do: actionOf(o), id: o.ID}
		if o.Target != "" {
			j.id = o.Target
		}
		due := o.NotBefore
		switch j.do {
		case create:
			unmade[o.Key] = true
			if making {
				continue
			}
			making = true
		case edit:
			if at, ok := l.edited[o.Key]; ok && !o.Final {
				due = later(due, at.Add(l.e.o.Pace))
			}
		case react, unreact:
			if j.id == "" {
				id, wait, err := l.target(on, o, unmade)
				if err != nil {
					return nil, next, err
				}
				if wait {
					continue
				}
				j.id = id
			}
		}
		if j.do != drop {
			due = later(due, l.e.limits.when(l.route(j.do), now))
		}
		if !due.After(now) {
			return &j, time.Time{}, nil
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return nil, next, nil
}

// target finds our message that a reaction is for. id is "" if it will never exist.
func (l *lane) target(on context.Context, o journal.Outgoing, unmade map[string]bool) (id string, wait bool, err error) {
	if unmade[o.TargetKey] {
		return "", true, nil
	}
	to, err := l.e.o.Store.Outgoing(on, l.id, o.TargetKey)
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	open := to.State == journal.Planned || to.State == journal.Sending
	return to.ID, to.ID == "" && open, nil
}

// pickPreview finds a preview that may be shown now, and drops those that may not be shown any more.
func (l *lane) pickPreview(on context.Context, rows []journal.Outgoing, now, next time.Time) (*job, time.Time, error) {
	open := map[string]bool{}
	for _, o := range rows {
		open[o.Key] = true
	}
	for _, key := range l.waitingPreviews() {
		o, err := l.e.o.Store.Outgoing(on, l.id, key)
		if err != nil && !errors.Is(err, journal.ErrUnknown) {
			return nil, next, err
		}
		if err != nil || o.Final || o.Gone || o.State == journal.Failed || o.State == journal.Superseded {
			l.takePreview(key)
			continue
		}
		due := later(l.e.limits.when(l.route(edit), now), l.edited[key].Add(l.e.o.Pace))
		switch {
		case open[key]: // its row comes first, without a wake-up when done, so check again then
		case !due.After(now):
			return &job{row: o, do: edit, id: o.ID, preview: l.takePreview(key)}, time.Time{}, nil
		case next.IsZero() || due.Before(next):
			next = due
		}
	}
	return nil, next, nil
}

func (l *lane) waitingPreviews() []string {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	return slices.Sorted(maps.Keys(l.previews))
}

// takePreview removes and returns the newest preview.
func (l *lane) takePreview(key string) json.RawMessage {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	body := l.previews[key]
	delete(l.previews, key)
	return body
}

func (l *lane) route(do action) route {
	if do == unreact {
		do = react
	}
	return route{lane: l.id, kind: do}
}
