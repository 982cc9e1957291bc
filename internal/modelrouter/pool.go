package modelrouter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/model"
	"chorus/internal/model/catalog"
)

// Maker returns the model for one account. It must not make any request.
type Maker func(Vendor, Account) (model.Model, error)

// Pool is a vendor that can be asked, with any number of keys. It always uses the first
// healthy key, because a prompt cache belongs to an account. A key that was refused for its
// rate or quota rests, and so does one that was not accepted.
//
// While nothing of an answer was shown, a refused key is followed by the next one at once.
// When a key is not accepted, the credentials are read again; if they changed, the call is
// made once more with them. It is safe for concurrent use.
type Pool struct {
	vendor Vendor
	make   Maker

	mu   sync.Mutex
	keys []*keyState
}

var _ model.Model = (*Pool)(nil)
var _ Lister = (*Pool)(nil)

// keyState is one key and its state. If its account changes, the keyState is replaced.
type keyState struct {
	account Account
	model   model.Model // nil until it is needed
	until   time.Time   // it rests until then
	auth    bool        // because it was not accepted
	strikes int         // how often in a row it had to rest
}

// How long a key rests that was refused without a stated wait: long enough for a
// per-minute limit, and no longer than a person would wait before checking.
const (
	shortRest = time.Minute
	longRest  = 10 * time.Minute
)

// Open reads the vendor's keys. It makes no model and no request yet.
// If there is no key, the error is a *NoKey.
func Open(v Vendor, make Maker) (*Pool, error) {
	p := &Pool{vendor: v, make: make}
	if err := p.read(); err != nil {
		return nil, err
	}
	return p, nil
}

// Vendor returns the pool's vendor.
func (p *Pool) Vendor() Vendor { return p.vendor }

// read reads the present credentials and keeps the state of those that stayed.
func (p *Pool) read() error {
	accounts, err := p.vendor.Accounts()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.keys
	p.keys = nil
	for _, a := range accounts {
		var s *keyState
		for _, o := range old {
			if o.account.equal(a) {
				s = o
			}
		}
		if s == nil {
			s = &keyState{account: a}
		}
		p.keys = append(p.keys, s)
	}
	return nil
}

// ambient reports whether the provider finds its credentials itself, so that a
// new model may find others although no setting changed.
func (s *keyState) ambient(p catalog.Provider) bool {
	set := func(name string) bool { return s.account.Get(name) != "" }
	return p.Credentials != nil && !slices.ContainsFunc(p.Credentials, set)
}

// renew drops the model of a key, so that it looks for its credentials again.
func (p *Pool) renew(s *keyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.model = nil
}

// of returns the model of a key, created on first use.
func (p *Pool) of(s *keyState) (model.Model, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.model == nil {
		made, err := p.make(p.vendor, s.account)
		if err != nil {
			return nil, fmt.Errorf("vendor %s: %w", p.vendor.Name, err)
		}
		s.model = made
	}
	return s.model, nil
}

// all returns the present keys.
func (p *Pool) all() []*keyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys
}

// Prepare implements model.Model. The body is the same whichever key sends it.
func (p *Pool) Prepare(r model.Request) (model.Prepared, error) {
	m, err := p.of(p.all()[0])
	if err != nil {
		return model.Prepared{}, err
	}
	return m.Prepare(r)
}

// Stream implements model.Model. It only retries with another key; if a provider
// is busy or unreachable, retrying is up to the caller.
func (p *Pool) Stream(ctx context.Context, prep model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		c := &call{pool: p, ctx: ctx, prep: prep, tried: map[*keyState]bool{}}
		s, err := c.begin()
		for err == nil && s != nil {
			var failed *model.Error
			if failed, err = c.ask(s, yield); failed == nil {
				break
			}
			if s, err = c.after(s, failed); s == nil && err == nil {
				err = failed
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// call is one answer that is being requested.
type call struct {
	pool   *Pool
	ctx    context.Context
	prep   model.Prepared
	tried  map[*keyState]bool
	reread bool
}

// begin returns the key to begin with.
func (c *call) begin() (*keyState, error) {
	p := c.pool
	if s := p.pick(nil); s != nil {
		return s, nil
	}
	// All rest. A key may have been added meanwhile.
	if err := p.read(); err != nil {
		return nil, c.failure(model.Auth, err)
	}
	if s := p.pick(nil); s != nil {
		return s, nil
	}
	if s := p.doubtful(); s != nil {
		return s, nil
	}
	wait := p.wait()
	return nil, &model.Error{Kind: model.RateLimited, Provider: p.vendor.Name, Model: c.prep.Model, RetryAfter: wait,
		Message: fmt.Sprintf("all %d keys rest; the first is free again in %s", len(p.all()), wait.Round(time.Second))}
}

// ask requests an answer and passes it on. It returns a failure if another key
// may still be asked; otherwise the failure was passed on.
func (c *call) ask(s *keyState, yield func(model.Chunk, error) bool) (*model.Error, error) {
	c.tried[s] = true
	m, err := c.pool.of(s)
	if err != nil {
		return nil, c.failure(model.BadRequest, err)
	}
	shown := false
	for chunk, err := range m.Stream(c.ctx, c.prep) {
		if err == nil {
			if !shown {
				shown = true
				c.pool.well(s)
			}
			if !yield(chunk, nil) {
				return nil, nil
			}
			continue
		}
		var e *model.Error
		if !errors.As(err, &e) {
			return nil, c.failure(model.Network, err)
		}
		clean := c.pool.clean(e)
		if c.pool.rest(s, clean); shown {
			yield(nil, clean)
			return nil, nil
		}
		return clean, nil
	}
	return nil, nil
}

// after returns the key to try next if a key failed before anything
// was shown, or nil if the failure is final.
func (c *call) after(s *keyState, e *model.Error) (*keyState, error) {
	p := c.pool
	if c.ctx.Err() != nil {
		return nil, nil
	}
	switch e.Kind {
	case model.Auth:
		if !c.reread {
			c.reread = true
			if err := p.read(); err != nil {
				return nil, nil // what the provider said is worth more
			}
			if s.ambient(p.vendor.Provider()) {
				p.renew(s)
				return s, nil
			}
		}
		return p.pick(c.tried), nil
	case model.RateLimited:
		all := p.all()
		if len(all) < 2 {
			return nil, nil
		}
		if next := p.pick(c.tried); next != nil {
			return next, nil
		}
		tired := *e
		tired.RetryAfter = p.wait()
		tired.Message = strings.TrimSuffix(fmt.Sprintf("%d keys were refused or rest: %s", len(all), e.Message), ": ")
		return nil, &tired
	default:
		return nil, nil
	}
}

// failure turns an error that no provider made into a model's error.
func (c *call) failure(kind model.ErrorKind, err error) error {
	return c.pool.clean(&model.Error{Kind: kind, Provider: c.pool.vendor.Name, Model: c.prep.Model, Message: err.Error()})
}

// Models lists what the vendor offers, and checks with every key whether it is
// accepted. If only some are, the list comes with a *SomeKeys.
func (p *Pool) Models(ctx context.Context) ([]string, error) {
	var names []string
	var failed []error
	worked := false
	keys := p.all()
	for i, s := range keys {
		m, err := p.of(s)
		if err != nil {
			return nil, err
		}
		lister, ok := m.(Lister)
		if !ok {
			return nil, nil
		}
		some, err := lister.Models(ctx)
		if err != nil {
			if e, ok := errors.AsType[*model.Error](err); ok {
				err = p.clean(e)
			}
			failed = append(failed, fmt.Errorf("key %d: %w", i+1, err))
			continue
		}
		if p.well(s); !worked {
			names, worked = some, true
		}
	}
	switch {
	case len(failed) == 0:
		return names, nil
	case worked:
		return names, &SomeKeys{Of: len(keys), Failed: failed}
	case len(keys) == 1:
		return nil, errors.Unwrap(failed[0])
	default:
		return nil, errors.Join(failed...)
	}
}

// Close closes idle connections. The pool may be used again.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.keys {
		if m, ok := s.model.(interface{ Close() }); ok {
			m.Close()
		}
	}
}

// SomeKeys means that some of a vendor's keys do not work while others do.
type SomeKeys struct {
	Of     int
	Failed []error
}

// Error says which keys do not work.
func (e *SomeKeys) Error() string {
	return fmt.Sprintf("%d of %d keys failed: %v", len(e.Failed), e.Of, strings.ReplaceAll(errors.Join(e.Failed...).Error(), "\n", "; "))
}
