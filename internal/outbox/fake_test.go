package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// mishap is what a platform does to a call instead of answering it well.
type mishap int

const (
	fine       mishap = iota
	lost              // done, and the answer does not come back
	notDone           // 5xx, and nothing was done
	slow              // nothing within the deadline; done a little later
	stormed           // 429
	stormedAll        // 429, global
	denied            // for ever
	mishaps           // how many there are
)

// platform is a small real one: channels with messages in order, reactions, nonces that are
// remembered for a while and never given back.
type platform struct {
	mu       sync.Mutex
	window   time.Duration // how long nonces are remembered
	channels map[string][]*message
	nonces   map[string]nonceUse
	lastID   int
	deny     map[string]Why // by channel
	probes   []Probe
	echo     func(nonce, id string) // tells of every message that is made; may be nil
	mishap   func() mishap
	calls    []string // kind and key, with the time since the start
	begun    time.Time
	dumb     bool              // does not even say that it is there
	asked    int               // whether it is
	cursed   map[string]mishap // by key
	late     sync.WaitGroup
	on, most int // calls at the same time
}

type nonceUse struct {
	id string
	at time.Time
}

type message struct {
	id, body  string
	at        time.Time
	edits     []time.Time
	reactions map[string]bool
}

func newPlatform(window time.Duration) *platform {
	return &platform{window: window, channels: map[string][]*message{}, nonces: map[string]nonceUse{}, deny: map[string]Why{}, cursed: map[string]mishap{},
		mishap: func() mishap { return fine }, begun: time.Now()}
}

var _ Platform = (*platform)(nil)

func (p *platform) Answers(context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return !p.dumb
}

// curses lets something go wrong with every call about a key, from now on.
func (p *platform) curses(key string, m mishap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cursed[key] = m
}

// silent lets it fall silent, or speak again.
func (p *platform) silent(dumb bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dumb = dumb
}

var errStatus = errors.New("status 502")

// call does work, or whatever goes wrong instead.
func (p *platform) call(ctx context.Context, kind string, c Call, work func() error) error {
	p.mu.Lock()
	p.calls = append(p.calls, fmt.Sprintf("%s %s %v", kind, c.Key, time.Since(p.begun).Round(time.Millisecond)))
	p.on++
	p.most = max(p.most, p.on)
	what, why := p.mishap(), p.deny[c.Lane.Channel]
	cursed := c.Key
	if kind == "find" {
		cursed = "find " + c.Key
	}
	if curse, ok := p.cursed[cursed]; ok {
		what = curse
	}
	p.mu.Unlock()
	defer func() { p.mu.Lock(); p.on--; p.mu.Unlock() }()
	time.Sleep(10 * time.Millisecond)
	locked := func() error { p.mu.Lock(); defer p.mu.Unlock(); return work() }
	if why != "" {
		return &Trouble{Why: why, Err: errors.New("no")}
	}
	switch what {
	case lost:
		_ = locked()
		return &Trouble{Why: Temporary, Err: errStatus}
	case notDone:
		return &Trouble{Why: Temporary, Err: errStatus}
	case slow:
		p.late.Go(func() {
			<-ctx.Done()
			time.Sleep(2 * time.Second)
			_ = locked()
		})
		<-ctx.Done()
		return ctx.Err()
	case stormed:
		return &RateLimited{After: 3 * time.Second}
	case stormedAll:
		return &RateLimited{After: 2 * time.Second, Global: true}
	case denied:
		return &Trouble{Why: Forbidden, Err: errors.New("missing permission")}
	}
	return locked()
}

func (p *platform) Create(ctx context.Context, c Call) (string, error) {
	var id string
	err := p.call(ctx, "create", c, func() error {
		if use, ok := p.nonces[c.Nonce]; ok && time.Since(use.at) < p.window {
			id = use.id
			return nil
		}
		p.lastID++
		id = strconv.Itoa(p.lastID)
		p.nonces[c.Nonce] = nonceUse{id, time.Now()}
		p.channels[c.Lane.Channel] = append(p.channels[c.Lane.Channel],
			&message{id: id, body: string(c.Body), at: time.Now(), reactions: map[string]bool{}})
		if p.echo != nil {
			p.echo(c.Nonce, id)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// with finds the message a call is about.
func (p *platform) with(c Call, work func(*message)) func() error {
	return func() error {
		for _, m := range p.channels[c.Lane.Channel] {
			if m.id == c.ID {
				work(m)
				return nil
			}
		}
		return &Trouble{Why: Gone, Err: errors.New("unknown message")}
	}
}

func (p *platform) Edit(ctx context.Context, c Call) error {
	return p.call(ctx, "edit", c, p.with(c, func(m *message) {
		m.body = string(c.Body)
		m.edits = append(m.edits, time.Now())
	}))
}

func (p *platform) Delete(ctx context.Context, c Call) error {
	return p.call(ctx, "delete", c, p.with(c, func(gone *message) {
		p.channels[c.Lane.Channel] = slices.DeleteFunc(p.channels[c.Lane.Channel], func(m *message) bool { return m == gone })
	}))
}

func (p *platform) React(ctx context.Context, c Call) error {
	return p.call(ctx, "react", c, p.with(c, func(m *message) { m.reactions[string(c.Body)] = true }))
}

func (p *platform) Unreact(ctx context.Context, c Call) error {
	return p.call(ctx, "unreact", c, p.with(c, func(m *message) { delete(m.reactions, string(c.Body)) }))
}

// Find knows no nonces: it goes by body, place and time.
func (p *platform) Find(ctx context.Context, q Probe) (string, Verdict, error) {
	var id string
	p.mu.Lock()
	p.probes = append(p.probes, q)
	p.mu.Unlock()
	err := p.call(ctx, "find", Call{Lane: q.Lane, Key: q.Key}, func() error {
		for _, m := range p.channels[q.Lane.Channel] {
			if newer(m.id, q.After) && m.body == string(q.Body) && !m.at.Before(q.Since) {
				id = m.id
				return nil
			}
		}
		return nil
	})
	return id, verdict(id), err
}

func verdict(id string) Verdict {
	if id == "" {
		return Absent
	}
	return Present
}

func newer(a, b string) bool {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
}

// shows is the channel as people see it.
func (p *platform) shows(channel string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, m := range p.channels[channel] {
		text := m.body
		signs := make([]string, 0, len(m.reactions))
		for r := range m.reactions {
			signs = append(signs, r)
		}
		slices.Sort(signs)
		for _, s := range signs {
			text += " +" + s
		}
		out = append(out, text)
	}
	return out
}

func (p *platform) called() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// goes says what happens to the next calls; after them all is well.
func (p *platform) goes(list ...mishap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mishap = func() mishap {
		if len(list) == 0 {
			return fine
		}
		m := list[0]
		list = list[1:]
		return m
	}
}

// always says what happens to every call from now on.
func (p *platform) always(m mishap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mishap = func() mishap { return m }
}

// message gives a copy of one.
func (p *platform) message(channel string, i int) message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.channels[channel][i]
}

// denies refuses every call in these channels, and in no others.
func (p *platform) denies(deny map[string]Why) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deny = deny
}
