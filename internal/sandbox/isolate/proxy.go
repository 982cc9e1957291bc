package isolate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/egress"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
)

// EgressProxy is how a thread's commands reach the network: a proxy that the first
// command starts and that ends with the thread's tools. Without any allowed host it
// refuses everything and says which setting would allow it.
type EgressProxy struct {
	Thread chat.ThreadID
	// OnRefused receives each refusal as a sentence; may be nil. It must not block.
	OnRefused func(text string)

	mu      sync.Mutex
	proxy   *egress.Proxy
	dir     *OwnDir // removed with the proxy
	rules   string  // identifies the plan behind its current rules
	opened  opened
	setting string
	notes   map[int]*[]string // refusals for each running command, by number
	next    int
	early   earlyStart // early start of its thread's sandbox, which needs the proxy
}

// opened is how a command reaches the proxy.
type opened struct {
	socket string
	env    []string
	roots  []sandbox.Root
}

// socketName is the name of the proxy's socket in its directory.
const socketName = "proxy"

// longestSocket is a path length that every system accepts for a unix socket.
const longestSocket = 90

// open starts the proxy if it is not running, applies the rules of the plan, and returns how to reach it.
func (d *EgressProxy) open(ctx context.Context, a *Isolation, p Plan) (opened, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rules := proxyRules(p)
	key := fmt.Sprintf("%q %q", rules.Hosts, secretsOf(p.secrets))
	if d.proxy != nil && d.rules == key {
		return d.opened, nil
	}
	d.setting = hostsSetting(p)
	if d.proxy != nil {
		if err := d.proxy.SetRules(rules); err != nil {
			return opened{}, err
		}
	} else if err := d.start(ctx, a, rules); err != nil {
		return opened{}, fmt.Errorf("open the sandbox's network proxy: %w", err)
	}
	if err := d.describe(len(p.secrets) > 0); err != nil {
		return opened{}, fmt.Errorf("describe the sandbox's network proxy: %w", err)
	}
	d.rules = key
	return d.opened, nil
}

// hostsSetting returns the key that adds hosts to a plan.
func hostsSetting(p Plan) string {
	return cmp.Or(p.hostsKey, "egress.hosts or profiles."+p.Profile+".hosts")
}

func (d *EgressProxy) start(ctx context.Context, a *Isolation, rules egress.Rules) error {
	dir, err := a.proxyDir(d.Thread)
	if err != nil {
		return err
	}
	proxy, err := egress.Listen(context.WithoutCancel(ctx), "unix:"+filepath.Join(dir.Path, socketName), rules, egress.Options{
		Setting: d.setting, Dir: dir.Path, OnRefused: func(r egress.Refusal) { d.refused(a, r) },
	})
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	d.proxy, d.dir = proxy, dir
	return nil
}

// describe stores how to reach the proxy. Its certificate is shown only
// if it must open connections to fill in a secret.
func (d *EgressProxy) describe(secrets bool) error {
	view := egress.View{Proxy: bwrap.Proxy}
	d.opened = opened{socket: filepath.Join(d.dir.Path, socketName)}
	var err error
	if secrets {
		if view.Trust, err = d.proxy.TrustFile(); err != nil {
			return err
		}
		d.opened.roots = []sandbox.Root{{Path: view.Trust}}
	}
	d.opened.env, err = d.proxy.Environ(view)
	return err
}

// proxyRules returns the proxy's rules for a plan.
func proxyRules(p Plan) egress.Rules {
	rules := egress.Rules{Hosts: p.Hosts}
	for _, s := range p.secrets {
		rules.Secrets = append(rules.Secrets, egress.Secret{Name: s.Name, Hosts: s.Hosts, Value: func() (string, error) {
			if s.Value == "" {
				return "", errors.New("it is empty")
			}
			return string(s.Value), nil
		}})
	}
	return rules
}

// secretsOf returns values for detecting changed secrets. They never leave the process.
func secretsOf(list []config.SecretRule) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.Name, string(s.Value), strings.Join(s.Hosts, " "))
	}
	return out
}

// refused logs a refusal and notes it for the commands that are running.
func (d *EgressProxy) refused(a *Isolation, r egress.Refusal) {
	a.Log.Info("the sandbox's network refused a host", "component", "sandbox", "event", "host_refused", "thread", d.Thread, "host", r.Host, "why", string(r.Kind), "secret", r.Secret)
	d.mu.Lock()
	defer d.mu.Unlock()
	text := fmt.Sprintf("[network: %s was refused (%s); whoever owns this Chorus may add %q to %s]", r.Host, r.Kind, r.Host, d.setting)
	switch r.Kind {
	case egress.WrongHost:
		text = fmt.Sprintf("[network: the secret %q is not for %s; whoever owns this Chorus may add it to secrets.%s.hosts]", r.Secret, r.Host, r.Secret)
	case egress.NoSecret:
		text = fmt.Sprintf("[network: there is no secret %q; whoever owns this Chorus may add it under secrets]", r.Secret)
	}
	if d.OnRefused != nil {
		d.OnRefused(text)
	}
	for _, notes := range d.notes {
		if !slices.Contains(*notes, text) && len(*notes) < 10 { // enough for a model to act on
			*notes = append(*notes, text)
		}
	}
}

// listen collects refusals until done is called. Then refusals returns them.
func (d *EgressProxy) listen() (refusals func() []string, done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.notes == nil {
		d.notes = map[int]*[]string{}
	}
	n, notes := d.next, &[]string{}
	d.next++
	d.notes[n] = notes
	return func() []string { return *notes }, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.notes, n)
	}
}

// Close ends the proxy, its connections, and any early start for commands that need it.
func (d *EgressProxy) Close() error {
	d.early.close()
	d.mu.Lock()
	proxy, dir := d.proxy, d.dir
	d.proxy = nil
	d.mu.Unlock() // closing may still report refusals, which take the lock
	if proxy == nil {
		return nil
	}
	return errors.Join(proxy.Close(), dir.Close())
}
