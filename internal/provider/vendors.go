package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/config"
	"chorus/internal/model/catalog"
	"chorus/internal/modelrouter"
)

// For returns models for a bot whose files declare these vendors: a bot with its own keys uses them, and
// nobody else does. Bots that declare the same vendors share the state of their keys.
func (m *Models) For(all []config.Vendor) (*Models, error) {
	key := fingerprint(all)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readFiles()
	if key == m.fingerprint && m.broken == nil {
		return m, nil
	}
	if view := m.views[key]; view != nil {
		return view, nil
	}
	vendors, err := declared(all)
	if err != nil {
		return nil, err
	}
	view := NewModels(m.Env, m.provider, m.model).In(m.home)
	view.Timeouts, view.Through = m.Timeouts, m.Through
	view.read, view.declared, view.fingerprint = true, vendors, key
	if m.views == nil {
		m.views = map[string]*Models{}
	}
	m.views[key] = view
	return view, nil
}

// fingerprint identifies a list of vendors including all values. It
// is a hash, because the list contains secrets.
func fingerprint(all []config.Vendor) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, v := range all {
		// Plain maps, because the config's own types hide their contents.
		err := enc.Encode([]any{v.Name, map[string]string(v.Config), v.Provides, map[string]string(v.Headers), v.Extra})
		if err != nil {
			fmt.Fprint(h, err) // an extra field that cannot be encoded; declared reports it
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Vendors returns all vendors, in the order in which their rules are asked.
// The first call reads the files; an error is about them.
func (m *Models) Vendors() ([]modelrouter.Vendor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readFiles()
	return modelrouter.Merge(m.declared, modelrouter.BuiltIn(m.Env)), m.broken
}

// readFiles reads the vendors that the home's shared.yaml declares for everybody, once.
func (m *Models) readFiles() {
	if m.read {
		return
	}
	m.take(m.shared())
}

func (m *Models) take(all []config.Vendor, err error) {
	m.read, m.broken, m.fingerprint, m.declared = true, err, fingerprint(all), nil
	if err == nil {
		m.declared, m.broken = declared(all)
	}
}

func (m *Models) shared() ([]config.Vendor, error) {
	if m.home == nil {
		return nil, nil
	}
	dir := config.Folder("", m.home.Dir(), m.Env)
	if _, err := os.Stat(filepath.Join(dir, "shared.yaml")); err != nil {
		return nil, nil // most homes have no file, so there is nothing to read
	}
	bot, problems := config.Load(config.Options{Dir: dir, Env: m.Env}, config.Ask{})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return bot.Vendors, nil
}

// declared converts what the files say to vendors. The kind may be in the config.
func declared(all []config.Vendor) ([]modelrouter.Vendor, error) {
	var out []modelrouter.Vendor
	for _, c := range all {
		v, err := modelrouter.Declare(c.Name, modelrouter.Kind(c.Config["kind"]), c.Config, c.Provides, nil)
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		if v.Headers, v.Extra = c.Headers, c.Extra; len(v.Extra) > 0 && !v.Provider().ExtraFields {
			takers := catalog.Names(func(p catalog.Provider) bool { return p.ExtraFields })
			return nil, fmt.Errorf("config: vendor %s: extra is only for %s; it is of kind %s", c.Name, strings.Join(takers, ", "), v.Kind)
		}
		v.Config = func(key string) (string, error) {
			now, err := c.Reread()
			return now.Config[key], err
		}
		out = append(out, v)
	}
	return out, nil
}
