// Package modelrouter knows who can be asked for which model, and with which key.
//
// It promises that:
//   - the same name, vendors and lists always resolve to the same model, and an error says which vendors were considered and why none fits;
//   - keys are read when they are needed and read again when one is not accepted, so that a key can be changed in a running program;
//   - a call moves to another key only as long as nothing of its answer was shown;
//   - no key ever appears in an error.
//
// The app decides which implementation a kind has.
package modelrouter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"chorus/internal/datadir"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
)

// Vendor offers models, under a name that people put before a slash.
type Vendor struct {
	Name string
	Kind Kind
	// Config returns a setting by its name in the config file (anthropic_api_key, api_base, …), or "" if it
	// is not set. It is called whenever the value is needed and must be safe for concurrent use.
	Config func(key string) (string, error)
	// Provides are the models for which it is chosen if only the model is named.
	Provides []Pattern
	// Headers are sent with each request, and Extra is added to its body if the kind supports it.
	Headers map[string]string
	Extra   map[string]any
	// Declared means that it is in a file. The others are built in, and most of them wait for a key.
	Declared bool
}

// Account is one key of a vendor with everything else that was set at that moment.
type Account struct {
	Key    string // "": none is needed, or the kind finds its own
	Base   string // the address; "": the kind's own
	values map[string]string
	secret []string // the names among values that must not be shown
}

// Get returns one of the kind's other settings.
func (a Account) Get(name string) string { return a.values[name] }

// String hides the key and everything else if the account is printed or logged.
func (a Account) String() string { return "an account" }

// GoString hides them too.
func (a Account) GoString() string { return a.String() }

func (a Account) equal(b Account) bool {
	return a.Key == b.Key && a.Base == b.Base && maps.Equal(a.values, b.values)
}

// secrets returns the values that must not be shown.
func (a Account) secrets() []string {
	out := []string{a.Key}
	for _, name := range a.secret {
		out = append(out, a.values[name])
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// get reads the first of the settings that is set. A key may also be in a file.
func (v Vendor) get(names ...string) (string, error) {
	if v.Config == nil {
		return "", nil
	}
	for _, name := range names {
		var failed error
		read := func(name string) string {
			text, err := v.Config(name)
			if err != nil && failed == nil {
				failed = err
			}
			return text
		}
		value, err := datadir.Secret(func(asked string) string {
			if base, ok := strings.CutSuffix(asked, "_FILE"); ok {
				return read(base + "_file")
			}
			return read(asked)
		}, name)
		if failed != nil {
			err = failed
		}
		if err != nil {
			return "", fmt.Errorf("vendor %s: %w", v.Name, err)
		}
		if value != "" {
			return value, nil
		}
	}
	return "", nil
}

// Accounts reads the vendor's present keys and settings. Several keys are separated by
// commas or line ends; each is an account. A vendor that needs no key has one account
// without. If a key is missing, the error is a *NoKey.
func (v Vendor) Accounts() ([]Account, error) {
	if !v.Kind.Known() {
		return nil, unknownKind(v.Name, v.Kind)
	}
	p := v.Provider()
	text, err := v.get(p.Settings.Key...)
	if err != nil {
		return nil, err
	}
	common := Account{values: map[string]string{}}
	if common.Base, err = v.get(p.Settings.Address...); err != nil {
		return nil, err
	}
	for _, s := range p.Settings.Other {
		if common.values[s.Name], err = v.get(append([]string{s.Name}, s.Aliases...)...); err != nil {
			return nil, err
		}
		if s.Secret {
			common.secret = append(common.secret, s.Name)
		}
	}
	var out []Account
	for _, key := range SplitKeys(text) {
		one := common
		one.Key = key
		out = append(out, one)
	}
	switch {
	case len(out) > 0:
		return out, nil
	case p.Key == catalog.KeyOptional, p.Key == catalog.KeyUnlessAddress && common.Base != "":
		return []Account{common}, nil
	default:
		return nil, v.noKey()
	}
}

// SplitKeys splits several keys, in order and without duplicates.
func SplitKeys(text string) []string {
	var out []string
	for _, key := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if key = strings.TrimSpace(key); key != "" && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// Configured reports whether the vendor was meant to be used: a file names it and nothing is missing, or the
// environment has its key. A key that cannot be read counts too, so that somebody gets to know.
func (v Vendor) Configured() bool {
	accounts, err := v.Accounts()
	if err != nil {
		_, missing := err.(*NoKey)
		return !missing
	}
	p := v.Provider()
	if v.Declared || p.Offline {
		return true
	}
	set := func(name string) bool {
		if slices.Contains(p.Settings.Address, name) {
			return accounts[0].Base != ""
		}
		return accounts[0].Get(name) != ""
	}
	for _, group := range p.Shown {
		if !slices.ContainsFunc(group, set) {
			return false
		}
	}
	return true
}

// Provider returns what the catalog knows about the vendor's protocol.
func (v Vendor) Provider() catalog.Provider { return v.Kind.Provider() }

// KeySetting returns where the vendor's key should be set, as a person would look for it.
func (v Vendor) KeySetting() string {
	switch p := v.Provider(); {
	case len(p.Settings.Key) == 0:
		return "the credentials of " + v.Name
	case v.Declared:
		return p.Settings.Key[0] + " of vendor " + v.Name
	default:
		return p.KeyVariable()
	}
}

// Catalog returns the name under which the catalog has the vendor's models: the kind's,
// unless it is somebody's own server that is only compatible with OpenAI's.
func (v Vendor) Catalog() string {
	if p := v.Provider(); p.Compatible && v.Declared && v.Name != p.Name {
		if base, err := v.get(p.Settings.Address...); err != nil || base != "" {
			return v.Name
		}
	}
	return string(v.Kind)
}

// NoKey is the error for a vendor that cannot be asked because a key is missing.
type NoKey struct{ cause model.Error }

func (v Vendor) noKey() *NoKey {
	where := fmt.Sprintf("set %s (or %s_FILE)", v.KeySetting(), v.KeySetting())
	if v.Declared {
		key := v.Provider().Settings.Key[0]
		where = fmt.Sprintf("set %s (or %s_file) in its config", key, key)
	}
	return &NoKey{model.Error{Kind: model.Auth, Provider: v.Name,
		Message: fmt.Sprintf("there is no key for %s: %s, or try the offline model with --model demo/guide", v.Name, where)}}
}

// Error says what to set.
func (e *NoKey) Error() string { return e.cause.Message }

// Unwrap returns a model failure of the kind auth that happened before anybody was asked.
func (e *NoKey) Unwrap() error { return &e.cause }
