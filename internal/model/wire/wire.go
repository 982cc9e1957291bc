// Package wire is what the HTTP providers have in common: one call with its deadlines, errors that are read
// the same way everywhere, and the small encodings that bodies consist of. It promises that no call outlives
// its context, that an answer cannot grow without bound, and that a key never appears in an error.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// The default deadlines: a model may think for a while before its first byte,
// and a provider sends at least a ping every half minute.
const (
	FirstByte = 120 * time.Second
	Idle      = 90 * time.Second
)

// maxAnswer limits an answer: 128k tokens of output are about 0.5 MB of text,
// and the frames around each token some 30 times that.
const maxAnswer = 64 << 20

var (
	errTooLarge  = errors.New("the answer is larger than any answer can be")
	errFirstByte = errors.New("no answer began in time")
	errIdle      = errors.New("the answer stopped coming")
)

// Call is one HTTP call with deadlines. It must be closed in the end.
type Call struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	first  time.Duration
	idle   time.Duration
	pause  time.Duration // what the timer is set to after a read
	began  atomic.Bool
	body   io.ReadCloser
	left   int
	err    error
}

// Watch starts the timer of a call: first for the first byte, then
// idle between bytes. Zero means the default.
func Watch(parent context.Context, first, idle time.Duration) *Call {
	if first <= 0 {
		first = FirstByte
	}
	if idle <= 0 {
		idle = Idle
	}
	c := &Call{first: first, idle: idle, pause: idle, left: maxAnswer}
	c.ctx, c.cancel = context.WithCancelCause(parent)
	c.timer = time.AfterFunc(first, c.late)
	return c
}

// late is called when the timer fires.
func (c *Call) late() {
	if c.began.Load() {
		c.cancel(fmt.Errorf("%w (nothing for %s)", errIdle, c.idle))
		return
	}
	c.cancel(fmt.Errorf("%w (%s)", errFirstByte, c.first))
}

// Context returns the context for the request.
func (c *Call) Context() context.Context { return c.ctx }

// maxReport limits the body of an error.
const maxReport = 1 << 20

// Send makes the request and watches the body of the response before anybody reads
// it. Of an error's body it reads no more than maxReport.
func (c *Call) Send(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := send(r)
	if err != nil || res == nil || res.Body == nil {
		return res, err
	}
	if c.body = res.Body; res.StatusCode >= 400 {
		c.left = maxReport
	}
	res.Body = watched{c}
	return res, nil
}

// watched is a body that is closed with its call, and no sooner.
type watched struct{ *Call }

// Close does not close the call.
func (w watched) Close() error { return nil }

// Read reads from the watched body.
func (c *Call) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.body.Read(p)
	if n > 0 {
		c.began.Store(true)
		c.timer.Reset(c.pause) // if it has already fired, the call is cancelled and stays so
		if c.left -= n; c.left < 0 && err == nil {
			err = errTooLarge
		}
	}
	c.err = err
	return n, err
}

// drainTime is how long to wait for the end of a finished answer: it is
// already on its way, unless the server forgot it.
const drainTime = 250 * time.Millisecond

// Drain reads what follows a finished answer, so that the connection can be reused. It never takes long.
func (c *Call) Drain() {
	c.pause = drainTime
	c.timer.Reset(drainTime)
	_, _ = io.CopyN(io.Discard, c, 64<<10) // whatever it returns, the answer is here
}

// Close ends the call, whatever state it is in.
func (c *Call) Close() error {
	c.timer.Stop()
	c.cancel(context.Canceled)
	if c.body != nil {
		return c.body.Close()
	}
	return nil
}

// Cause returns why a call failed with err: the deadline or the cancellation behind it, if there is one.
func (c *Call) Cause(err error) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if c.err != nil && !errors.Is(c.err, io.EOF) {
		return c.err
	}
	return err
}
