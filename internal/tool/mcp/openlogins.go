package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// OpenLogins are logins begun by people whose browser is on another machine. The browser returns to an
// address of this program, or the person copies that address by hand. They are kept in memory, so they must
// be begun again after a restart. The zero value is ready to use, from several goroutines.
type OpenLogins struct {
	Life time.Duration // lifetime of a login; 0: OpenLoginTime

	mu      sync.Mutex
	byID    map[string]*OpenLogin
	byState map[string]*OpenLogin
	work    sync.WaitGroup
}

// OpenLoginTime is how long a person has to agree in a browser.
const OpenLoginTime = 10 * time.Minute

// OpenLogin is one login in progress.
type OpenLogin struct {
	ID     string
	Server string    // its name
	Page   string    // the page on which a person agrees
	Until  time.Time // when it expires

	state  string // identifies it in the address that the browser returns to; nobody else knows it
	came   chan url.Values
	back   bool          // the browser returned; guarded by the lock of OpenLogins
	asked  chan struct{} // closed when Page is known
	ended  chan struct{} // closed when it is over
	err    error         // why the login failed, once it is over
	cancel context.CancelCauseFunc
}

// Errors of a login that can no longer be finished.
var (
	ErrUnknownLogin  = errors.New("no login is waiting for this: it ends after ten minutes, or when the server restarts; begin it again")
	ErrFinishedLogin = errors.New("this login was finished before; begin it again if it is needed")

	errLoginOver     = errors.New("nobody has logged in within ten minutes; begin it again")
	errLoginReplaced = errors.New("another login to the same server was begun meanwhile")
	errStopping      = errors.New("the server is stopping; begin the login again")
)

// Begin begins a login whose browser returns to the address redirect. It returns when the page for the person
// is known, and calls done with the outcome. It cancels an earlier login to the same server.
func (l *OpenLogins) Begin(ctx context.Context, logins *Logins, s Server, o LoginOptions, redirect string, done func(error)) (*OpenLogin, error) {
	life := cmp.Or(l.Life, OpenLoginTime)
	one := &OpenLogin{ID: rand.Text(), Server: s.Name, Until: time.Now().Add(life).UTC(), came: make(chan url.Values, 1), asked: make(chan struct{}), ended: make(chan struct{})}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	own, stop := context.WithDeadlineCause(own, one.Until, errLoginOver)
	one.cancel = cancel
	l.keep(one)
	l.work.Go(func() {
		defer cancel(nil)
		defer stop()
		one.err = logins.authorize(own, s, o, redirect, func(ctx context.Context, page string) (*auth.AuthorizationResult, error) {
			return l.ask(ctx, one, page)
		})
		if cause := context.Cause(own); one.err != nil && cause != nil {
			one.err = cause
		}
		done(one.err)
		close(one.ended)
	})
	select {
	case <-one.asked:
		return one, nil
	case <-one.ended:
		if one.err != nil {
			return nil, one.err
		}
		return nil, ErrNoLogin
	case <-ctx.Done():
		cancel(ctx.Err())
		return nil, ctx.Err()
	}
}

// keep records a login, and cancels those that conflict with it or have expired.
func (l *OpenLogins) keep(one *OpenLogin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID, l.byState = map[string]*OpenLogin{}, map[string]*OpenLogin{}
	}
	for id, old := range l.byID {
		if old.Server == one.Server {
			old.cancel(errLoginReplaced)
		}
		if time.Now().After(old.Until) {
			delete(l.byID, id)
			delete(l.byState, old.state)
		}
	}
	l.byID[one.ID] = one
}

// ask publishes the page and waits until the browser returns.
func (l *OpenLogins) ask(ctx context.Context, one *OpenLogin, page string) (*auth.AuthorizationResult, error) {
	address, err := url.Parse(page)
	if err != nil || one.Page != "" || address.Scheme != "https" && address.Scheme != "http" {
		return nil, fmt.Errorf("%s asks for a login in an unknown way", one.Server)
	}
	l.mu.Lock()
	one.Page, one.state = page, address.Query().Get("state")
	l.byState[one.state] = one
	l.mu.Unlock()
	close(one.asked)
	select {
	case q := <-one.came:
		return readRedirect(q)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Return processes what a browser returned with and waits until the login is over. It
// returns the name of the server, if known, and why the login failed.
func (l *OpenLogins) Return(ctx context.Context, q url.Values) (server string, _ error) {
	l.mu.Lock()
	one := l.byState[q.Get("state")]
	if one == nil || q.Get("state") == "" || time.Now().After(one.Until) {
		l.mu.Unlock()
		return "", ErrUnknownLogin
	}
	again := one.back // a code is valid once, and so is a refusal
	one.back = true
	l.mu.Unlock()
	if again {
		return one.Server, ErrFinishedLogin
	}
	one.came <- q
	return one.Server, one.wait(ctx)
}

// Wait waits until a login is over. If ctx ends first, over is false.
func (l *OpenLogins) Wait(ctx context.Context, id string) (one *OpenLogin, over bool, _ error) {
	l.mu.Lock()
	one = l.byID[id]
	l.mu.Unlock()
	if one == nil {
		return nil, false, ErrUnknownLogin
	}
	_ = one.wait(ctx) // only whether it is over matters
	select {
	case <-one.ended:
		return one, true, one.err
	default:
		return one, false, nil
	}
}

func (one *OpenLogin) wait(ctx context.Context) error {
	select {
	case <-one.ended:
		return one.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close cancels all logins and waits until they are over.
func (l *OpenLogins) Close() {
	l.mu.Lock()
	for _, one := range l.byID {
		one.cancel(errStopping)
	}
	l.mu.Unlock()
	l.work.Wait()
}
