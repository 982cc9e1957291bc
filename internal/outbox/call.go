package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"chorus/internal/journal"
)

// errNoTarget means that the message to react to was never made.
var errNoTarget = errors.New("the message it belongs to is not there")

// errUnsure means that nobody knows whether an earlier attempt succeeded.
var errUnsure = errors.New("it is not known whether an earlier try was done")

// do makes one call and records its outcome. It returns a time before which the
// lane need not check again. Its errors are the store's.
func (l *lane) do(on context.Context, j job) (time.Time, error) {
	switch {
	case j.do == drop:
		return time.Time{}, l.end(j.row, journal.Outcome{Attempt: j.row.Attempts, State: journal.Superseded})
	case (j.do == react || j.do == unreact) && j.id == "":
		return time.Time{}, l.fail(j.row, Gone, errNoTarget)
	}
	select {
	case l.e.slots <- struct{}{}:
		defer func() { <-l.e.slots }()
	case <-on.Done():
		return time.Time{}, nil
	}
	if at := l.e.limits.take(l.route(j.do), time.Now()); !at.IsZero() {
		return at, nil
	}
	if j.preview != nil {
		l.show(j)
		return time.Time{}, nil
	}
	seen := j.row
	row, err := l.e.o.Store.BeginSend(on, seen)
	if err != nil {
		return time.Time{}, err
	}
	j.row = row
	unknown, began := seen.State == journal.Sending, time.Now()
	id, err := l.call(on, j, seen)
	return time.Time{}, l.outcome(on, j, began, unknown, id, err)
}

// call makes the call. Once begun it is waited for, even if the engine is stopping.
func (l *lane) call(on context.Context, j job, seen journal.Outgoing) (string, error) {
	ctx, cancel := context.WithTimeout(l.e.calls, l.e.o.CallTimeout)
	defer cancel()
	c := Call{Lane: l.id, Key: j.row.Key, Nonce: j.row.Nonce, ID: j.id, Body: j.row.TriedBody}
	p := l.e.o.Platform
	switch j.do {
	case edit:
		return "", p.Edit(ctx, c)
	case remove:
		return "", p.Delete(ctx, c)
	case react:
		return "", p.React(ctx, c)
	case unreact:
		return "", p.Unreact(ctx, c)
	}
	last := l.lastLook(j.row.Key)
	if seen.State == journal.Sending && (last || time.Since(seen.TriedAt) >= l.e.o.NonceWindow) {
		after, err := l.e.o.Store.LastMade(on, l.id, j.row.Order)
		if err != nil {
			return "", err
		}
		id, v, err := p.Find(ctx, Probe{Lane: l.id, Key: j.row.Key, Nonce: j.row.Nonce, Body: j.row.TriedBody, After: after, Since: seen.TriedAt})
		switch {
		case err != nil || v == Present:
			return id, err
		case v == Unknown:
			return "", &Trouble{Why: Unsure, Err: errUnsure}
		case time.Since(seen.TriedAt) < l.e.o.Late:
			return "", &Trouble{Why: Temporary, Err: errUnsure}
		}
		if last {
			return "", broken(seen)
		}
	}
	id, err := p.Create(ctx, c)
	if err == nil && id == "" {
		err = fmt.Errorf("the platform made %s without an id", j.row.Key)
	}
	return id, err
}

// outcome records the outcome of a call. unknown means that the outcome of an earlier
// attempt is not known, which a refusal of this one does not settle.
func (l *lane) outcome(on context.Context, j job, began time.Time, unknown bool, id string, err error) error {
	now := time.Now()
	o, attempt := j.row, j.row.Attempts
	if why, ever := permanent(err); ever && (why != Gone && why != Nowhere || (j.do != remove && j.do != unreact)) {
		return l.fail(o, why, err)
	} else if ever {
		err = nil
	}
	var limited *RateLimited
	switch {
	case errors.As(err, &limited):
		l.limit(j.do, limited, now)
		state := journal.Planned
		if unknown {
			state = journal.Sending
		}
		return l.end(o, journal.Outcome{Attempt: attempt, State: state, NotBefore: now.Add(limited.After), Alone: o.Alone, Why: "rate limited", Error: err.Error()})
	case err != nil:
		if j.do == edit {
			l.doubt(o.Key, o.TriedBody, now)
		}
		// Attempts also count rate limits, which specify their own wait and are no reason to wait longer.
		l.stumbled[o.Key]++
		since, over := l.alone(on, j, began)
		if over {
			return l.fail(o, Broken, err)
		}
		wait := l.e.backoff(l.stumbled[o.Key])
		l.e.o.Log.Info("outbox: trying again", "lane", l.id.String(), "key", o.Key, "do", string(j.do), "in", wait, "error", err)
		return l.end(o, journal.Outcome{Attempt: attempt, State: journal.Sending, NotBefore: time.Now().Add(wait), Alone: since, Why: string(Temporary), Error: err.Error()})
	}
	delete(l.stumbled, o.Key)
	delete(l.solos, o.Key)
	l.e.pulse.took(j.do, now)
	if j.do == create || j.do == edit {
		l.edited[o.Key] = now
	}
	if d, ok := l.doubts[o.Key]; ok && j.do == edit {
		// The call we gave up may still arrive. If it has the same body, that matters only
		// to the next edit; otherwise the last body is sent once more.
		if d.body != string(o.TriedBody) {
			delete(l.doubts, o.Key)
			return l.end(o, journal.Outcome{Attempt: attempt, State: journal.Planned, NotBefore: now.Add(l.e.again())})
		}
	}
	return l.end(o, journal.Outcome{Attempt: attempt, Rev: o.Tried, ID: id, State: journal.Sent})
}

// again is how long a call that we gave up may still be under way.
func (e *Engine) again() time.Duration { return max(e.o.Pace, 5*time.Second) }

func (l *lane) limit(do action, e *RateLimited, now time.Time) {
	l.e.limits.hold(l.route(do), e, now)
	l.e.o.Log.Info("outbox: rate limited", "lane", l.id.String(), "do", string(do), "after", e.After, "global", e.Global)
}

func (l *lane) fail(o journal.Outgoing, why Why, err error) error {
	delete(l.stumbled, o.Key)
	delete(l.solos, o.Key)
	if err := l.end(o, journal.Outcome{Attempt: o.Attempts, State: journal.Failed, Why: string(why), Error: err.Error()}); err != nil {
		return err
	}
	l.e.failed(o, why, err)
	return nil
}

// end records an outcome, even during a stop.
func (l *lane) end(row journal.Outgoing, o journal.Outcome) error {
	o.Lane, o.Key = l.id, row.Key
	return l.e.o.Store.EndSend(context.WithoutCancel(l.e.calls), o)
}

// show shows a preview. If it fails, the final text still comes later.
func (l *lane) show(j job) {
	ctx, cancel := context.WithTimeout(l.e.calls, l.e.o.CallTimeout)
	defer cancel()
	err := l.e.o.Platform.Edit(ctx, Call{Lane: l.id, Key: j.row.Key, ID: j.id, Body: j.preview})
	now := time.Now()
	l.edited[j.row.Key] = now
	if err == nil {
		l.e.pulse.took(edit, now)
	}
	var limited *RateLimited
	if errors.As(err, &limited) {
		l.limit(edit, limited, now)
	} else if _, ever := permanent(err); err != nil && !ever {
		l.doubt(j.row.Key, j.preview, now)
	}
}
