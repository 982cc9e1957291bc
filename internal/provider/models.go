package provider

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/modelrouter"
)

// Offline is the model that needs no key.
const Offline = "demo/guide"

// Models knows the vendors and resolves names to models. It reads nothing before a name is
// asked for, and creates no provider before something is sent to it.
type Models struct {
	Env      func(string) string
	provider string // the default vendor, from settings
	model    string // the default model, from settings
	home     *datadir.Home
	Timeouts Timeouts
	Through  func(model.Model) model.Model // for tests: wraps models; nil: no wrapper

	mu          sync.Mutex
	read        bool                 // whether the files were read
	declared    []modelrouter.Vendor // from the files; the built-in ones come after them
	broken      error                // why there are none
	views       map[string]*Models   // for bots that declare others, by fingerprint
	fingerprint string
	made        map[string]*modelrouter.Pool

	list      modelrouter.Available // available_models.json
	listStamp string                // identifies its version
}

// NewModels returns models that read keys from env when a vendor is first used.
func NewModels(env func(string) string, provider, name string) *Models {
	return &Models{Env: env, provider: provider, model: name, made: map[string]*modelrouter.Pool{}}
}

// In makes it read the lists and vendors of a home.
func (m *Models) In(h *datadir.Home) *Models {
	m.home = h
	return m
}

// Renew makes these vendors apply from the next name on. They come from the version of the
// files that is in force; the files themselves may be broken by now.
func (m *Models) Renew(all []config.Vendor) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made, m.views = map[string]*modelrouter.Pool{}, nil // models in use keep what they have
	m.take(all, nil)
}

// Prefer sets what is used if nobody chose.
func (m *Models) Prefer(provider, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.provider, m.model = provider, name
}

func (m *Models) preferred() (provider, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.provider, m.model
}

// Providers lists the names that can always come before the slash.
func Providers() []string { return catalog.Names(nil) }

// Default returns the model for when nobody chose one: that of the settings, or else
// that of the first vendor with a key, or else the offline one.
func (m *Models) Default() string {
	provider, name := m.preferred()
	if name != "" {
		return name
	}
	all, _ := m.Vendors() // whoever uses the name gets the error
	if provider != "" {
		if i := slices.IndexFunc(all, func(v modelrouter.Vendor) bool { return v.Name == provider }); i >= 0 {
			return m.defaultOf(all[i])
		}
		return provider + "/"
	}
	for _, p := range catalog.Providers() {
		if p.Offline || p.BaseModels { // a base model answers no questions
			continue
		}
		for _, v := range all {
			if string(v.Kind) == p.Name && v.Catalog() == p.Name && v.Configured() {
				return m.defaultOf(v)
			}
		}
	}
	return Offline
}

// defaultOf returns a vendor's default model. For a vendor on somebody's
// own machine, that is a model that is installed.
func (m *Models) defaultOf(v modelrouter.Vendor) string {
	p := v.Provider()
	name := p.DefaultModel
	if p.Local != nil || v.Catalog() != p.Name {
		if there := m.Listed().Providers[v.Name].Models; len(there) > 0 && !slices.Contains(there, name) {
			name = there[0]
		}
	}
	return v.Name + "/" + name
}

// Name combines what somebody chose into one full name; both may be empty.
func (m *Models) Name(provider, name string) (string, error) {
	if provider != "" {
		all, err := m.Vendors()
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(all, func(v modelrouter.Vendor) bool { return v.Name == provider })
		if i < 0 {
			return "", fmt.Errorf("unknown provider %q; there are %s", provider, strings.Join(names(all), ", "))
		}
		if name == "" {
			name = m.defaultOf(all[i])
		}
		name = provider + "/" + strings.TrimPrefix(name, provider+"/")
	}
	choice, _, err := m.Choose(cmp.Or(name, m.Default()))
	if err != nil {
		return "", err
	}
	return choice.String(), nil
}

func names(all []modelrouter.Vendor) []string {
	var out []string
	for _, v := range all {
		out = append(out, v.Name)
	}
	slices.Sort(out)
	return out
}

// Choose finds the vendor of a name. It finds one that is already in use without searching,
// and reads the lists only for a name that does not say whose it is.
func (m *Models) Choose(name string) (modelrouter.Choice, modelrouter.Vendor, error) {
	if first, rest, _ := strings.Cut(name, "/"); rest != "" {
		m.mu.Lock()
		pool := m.made[first]
		m.mu.Unlock()
		if pool != nil {
			v := pool.Vendor()
			return modelrouter.Choice{Vendor: v.Name, Kind: v.Kind, Model: rest}, v, nil
		}
	}
	all, err := m.Vendors()
	if err != nil {
		return modelrouter.Choice{}, modelrouter.Vendor{}, err
	}
	choice, err := modelrouter.Resolve(name, all, modelrouter.Available{}, nil)
	if err != nil {
		choice, err = modelrouter.Resolve(name, all, m.Listed(), catalog.All())
	}
	if err != nil {
		return modelrouter.Choice{}, modelrouter.Vendor{}, err
	}
	i := slices.IndexFunc(all, func(v modelrouter.Vendor) bool { return v.Name == choice.Vendor })
	return choice, all[i], nil
}

// Listed returns the current available_models.json; an unreadable one lists nothing.
func (m *Models) Listed() modelrouter.Available {
	if m.home == nil {
		return modelrouter.Available{}
	}
	stamp := ""
	if info, err := os.Stat(m.home.Models()); err == nil {
		stamp = fmt.Sprint(info.ModTime().UnixNano(), info.Size())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if stamp != m.listStamp {
		m.list, _ = modelrouter.ReadAvailable(m.home.Models()) // `chorus models` reports it
		m.listStamp = stamp
	}
	return m.list
}

// Resolve resolves a name to a model that can be asked.
func (m *Models) Resolve(name string) (model.Handle, error) {
	choice, v, err := m.Choose(name)
	if err != nil {
		return model.Handle{}, err
	}
	pool, err := m.Open(v)
	if err != nil {
		return model.Handle{}, err
	}
	return model.Handle{Model: pool, Name: choice.Model, Entry: v.Entry(choice.Model)}, nil
}

// Open returns the vendor's pool of keys and their state.
func (m *Models) Open(v modelrouter.Vendor) (*modelrouter.Pool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pool := m.made[v.Name]; pool != nil {
		return pool, nil
	}
	pool, err := modelrouter.Open(v, func(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
		made, err := m.provide(v, a)
		if err == nil && m.Through != nil {
			made = m.Through(made)
		}
		return made, err
	})
	if err == nil {
		m.made[v.Name] = pool
	}
	return pool, err
}

// Price returns what a model costs and its maximum output.
func (m *Models) Price(name string) (ledger.Price, int) {
	choice, v, err := m.Choose(name)
	if err != nil {
		return ledger.Price{}, 0
	}
	e := v.Entry(choice.Model)
	return e.Price, e.MaxOutput
}

// Window returns how many tokens a model can read, or 0 if unknown.
func (m *Models) Window(name string) int {
	choice, v, err := m.Choose(name)
	if err != nil {
		return 0
	}
	return v.Entry(choice.Model).ContextWindow
}

// RunSettings returns the settings with which a run with this model is rendered.
func RunSettings(e catalog.Entry, base chat.Settings) chat.Settings {
	base.ContextWindow = cmp.Or(base.ContextWindow, e.ContextWindow)
	if base.MaxTokens == 0 {
		// Enough for a long file, and no more than the model allows.
		base.MaxTokens = min(16384, e.MaxOutput)
	}
	return base
}

// Age says how old something is, for people.
func Age(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case at.IsZero():
		return "of unknown age"
	case d < 2*time.Minute:
		return "just now"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes old", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours old", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days old", int(d.Hours()/24))
	}
}
