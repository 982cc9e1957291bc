package app

import (
	"fmt"
	"os"
	"path/filepath"

	"chorus/internal/config"
	"chorus/internal/vendor"
)

// Declare takes these vendors of config files, instead of those it had. When one of
// them cannot be, nothing changes.
func (m *Models) Declare(all []config.Vendor) error {
	vendors, err := declared(all)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read, m.declared, m.broken = true, vendors, nil
	m.made = map[string]*vendor.Pool{} // what is in use goes on with what it has
	return nil
}

// Vendors are all there are, in the order in which their rules are asked. The files are
// read when this is asked first; an error is about them.
func (m *Models) Vendors() ([]vendor.Vendor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.read {
		m.read = true
		m.declared, m.broken = m.shared()
	}
	return vendor.Merge(m.declared, vendor.BuiltIn(m.env)), m.broken
}

// shared are the vendors that the home's shared.yaml declares for everybody.
func (m *Models) shared() ([]vendor.Vendor, error) {
	if m.home == nil {
		return nil, nil
	}
	dir := config.Folder("", m.home.Dir(), m.env)
	if _, err := os.Stat(filepath.Join(dir, "shared.yaml")); err != nil {
		return nil, nil // without a file there is nothing to read, and most have none
	}
	bot, problems := config.Load(config.Options{Dir: dir, Env: m.env}, config.Ask{})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return declared(bot.Vendors)
}

// declared makes what the files say into vendors. The kind may stand in the config.
func declared(all []config.Vendor) ([]vendor.Vendor, error) {
	var out []vendor.Vendor
	for _, c := range all {
		v, err := vendor.Declare(c.Name, vendor.Kind(c.Config["kind"]), c.Config, c.Provides, nil)
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		if v.Headers, v.Extra = c.Headers, c.Extra; len(v.Extra) > 0 && !takesExtra(v.Kind) {
			return nil, fmt.Errorf("config: vendor %s: extra is only for openai, openrouter and completions; it is of kind %s", c.Name, v.Kind)
		}
		v.Config = func(key string) (string, error) {
			now, err := c.Reread()
			return now.Config[key], err
		}
		out = append(out, v)
	}
	return out, nil
}
