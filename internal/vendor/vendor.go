// Package vendor knows who can be asked for which model, and with which key.
//
// It promises that the same name, the same vendors and the same lists resolve to the
// same model, and that an error says which vendors were considered and why none fits;
// that keys are read when they are needed and read again when one is not accepted, so
// that a key can be changed under a running program; that a call moves to another key
// only as long as nothing of its answer was shown; and that no key ever stands in an
// error. What plugs stand behind a kind is app's affair.
package vendor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"chorus/internal/home"
	"chorus/internal/model"
)

// Kind is the wire a vendor is spoken to over: the name of a provider package.
type Kind string

// The kinds there are.
const (
	Anthropic   Kind = "anthropic"
	OpenAI      Kind = "openai"
	Google      Kind = "google"
	OpenRouter  Kind = "openrouter"
	Bedrock     Kind = "bedrock"
	Ollama      Kind = "ollama"
	Completions Kind = "completions"
	Demo        Kind = "demo"
)

// Kinds lists them in the order in which a default is looked for.
func Kinds() []Kind {
	return []Kind{Anthropic, OpenAI, Google, OpenRouter, Bedrock, Ollama, Completions, Demo}
}

// Known reports whether a kind is one of them.
func (k Kind) Known() bool { return slices.Contains(Kinds(), k) }

// Vendor is somebody who offers models, under a name that people put before a slash.
type Vendor struct {
	Name string
	Kind Kind
	// Config gives a setting by its name in the config file (anthropic_api_key,
	// api_base, …), "" for one that is not set. It is asked anew whenever the value
	// is needed and must be safe for concurrent use.
	Config func(key string) (string, error)
	// Provides are the models it is chosen for when only the model is named.
	Provides []Pattern
	// Headers are sent with each request, Extra is added to its body, where the kind
	// allows for it.
	Headers map[string]string
	Extra   map[string]any
	// Declared: somebody wrote it into a file. The others are built in, and most of
	// them wait for a key.
	Declared bool
}

// wires says what the settings of a kind are called, the first that is set wins.
type wiring struct {
	key  []string // one API key or several
	base []string // the address
	more []string // whatever else it is made with
	// keyless: it can do without a key; own: without one if it has an address.
	keyless, own bool
}

var wirings = map[Kind]wiring{
	Anthropic:   {key: []string{"anthropic_api_key", "api_key"}, base: []string{"anthropic_base_url", "api_base", "base_url"}},
	OpenAI:      {key: []string{"openai_api_key", "api_key"}, base: []string{"openai_base_url", "api_base", "base_url"}, more: []string{"openai_api"}, own: true},
	Google:      {key: []string{"google_api_key", "gemini_api_key", "api_key"}, base: []string{"google_base_url", "gemini_base_url", "api_base", "base_url"}},
	OpenRouter:  {key: []string{"openrouter_api_key", "api_key"}, base: []string{"openrouter_base_url", "api_base", "base_url"}},
	Completions: {key: []string{"openai_completions_api_key", "api_key"}, base: []string{"openai_completions_base_url", "api_base", "base_url"}, own: true},
	Ollama:      {key: []string{"ollama_api_key", "api_key"}, base: []string{"ollama_host", "ollama_base_url", "api_base", "base_url"}, keyless: true},
	Bedrock: {base: []string{"aws_endpoint_url_bedrock_runtime", "api_base", "base_url"}, keyless: true,
		more: []string{"aws_access_key", "aws_secret_key", "aws_session_token", "aws_region", "aws_profile", "aws_bearer_token_bedrock"}},
	Demo: {keyless: true},
}

// aliases are other spellings of settings.
var aliases = map[string][]string{
	"aws_access_key": {"aws_access_key_id"},
	"aws_secret_key": {"aws_secret_access_key"},
	"aws_region":     {"aws_default_region"},
}

// Settings lists the names that the settings of a kind may have, the key's with their
// file variants.
func (k Kind) Settings() []string {
	w := wirings[k]
	var out []string
	for _, name := range w.key {
		out = append(out, name, name+"_file")
	}
	out = append(out, w.base...)
	for _, name := range w.more {
		out = append(append(out, name), aliases[name]...)
	}
	return out
}

// Account is one key of a vendor with everything else that was set at that moment.
type Account struct {
	Key    string // "": none is needed, or the kind finds its own
	Base   string // the address; "": the kind's own
	values map[string]string
}

// Get is one of the kind's other settings.
func (a Account) Get(name string) string { return a.values[name] }

func (a Account) equal(b Account) bool {
	return a.Key == b.Key && a.Base == b.Base && maps.Equal(a.values, b.values)
}

// secrets are the values that must not be seen.
func (a Account) secrets() []string {
	out := []string{a.Key}
	for name, value := range a.values {
		if strings.HasPrefix(name, "aws_") && name != "aws_region" && name != "aws_profile" {
			out = append(out, value)
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// get reads the first of the settings that is set; a key may also stand in a file.
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
		value, err := home.Secret(func(asked string) string {
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

// Accounts reads the vendor's keys and settings as they are now. Several keys stand
// behind each other with commas or line ends between; each of them is an account. A
// vendor that needs none has one account without. The error is a *NoKey when a key is
// missing.
func (v Vendor) Accounts() ([]Account, error) {
	w, ok := wirings[v.Kind]
	if !ok {
		return nil, fmt.Errorf("vendor %s: there is no kind %q; there are %s", v.Name, v.Kind, kindNames())
	}
	text, err := v.get(w.key...)
	if err != nil {
		return nil, err
	}
	common := Account{values: map[string]string{}}
	if common.Base, err = v.get(w.base...); err != nil {
		return nil, err
	}
	for _, name := range w.more {
		if common.values[name], err = v.get(append([]string{name}, aliases[name]...)...); err != nil {
			return nil, err
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
	case w.keyless, w.own && common.Base != "":
		return []Account{common}, nil
	default:
		return nil, v.noKey()
	}
}

// SplitKeys takes several keys apart, in their order, each once.
func SplitKeys(text string) []string {
	var out []string
	for _, key := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if key = strings.TrimSpace(key); key != "" && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// Configured reports whether the vendor was meant to be used: a file names it and it
// lacks nothing, or the environment has its key. A key that cannot be read counts, so
// that somebody hears of it.
func (v Vendor) Configured() bool {
	accounts, err := v.Accounts()
	if err != nil {
		_, missing := err.(*NoKey)
		return !missing
	}
	if v.Declared || v.Kind == Demo {
		return true
	}
	switch a := accounts[0]; v.Kind {
	case Ollama:
		return a.Base != ""
	case Bedrock: // the chain may find more; but a profile for other work is no wish to spend money here
		return a.Get("aws_region") != "" && (a.Get("aws_access_key") != "" || a.Get("aws_profile") != "" ||
			a.Get("aws_bearer_token_bedrock") != "" || a.Base != "")
	default:
		return true
	}
}

// KeySetting is where the vendor's key is to be put, as a person would look for it.
func (v Vendor) KeySetting() string {
	if v.Declared {
		if w := wirings[v.Kind]; len(w.key) > 0 {
			return w.key[0] + " of vendor " + v.Name
		}
		return "the config of vendor " + v.Name
	}
	if b, ok := builtIn(v.Kind); ok && b.secret != "" {
		return b.secret
	}
	return "the credentials of " + v.Name
}

// own reports whether the vendor is a server of somebody's own that only speaks like
// its kind: the catalog knows nothing of its models.
func (v Vendor) own(a Account) bool { return v.Declared && v.Name != string(v.Kind) && a.Base != "" }

// Catalog is the name under which the catalog has the vendor's models.
func (v Vendor) Catalog(a Account) string {
	if (v.Kind == OpenAI || v.Kind == Completions) && v.own(a) {
		return v.Name
	}
	return string(v.Kind)
}

// NoKey is a vendor that cannot be asked for want of a key.
type NoKey struct{ cause model.Error }

func (v Vendor) noKey() *NoKey {
	where := fmt.Sprintf("set %s (or %s_FILE)", v.KeySetting(), v.KeySetting())
	if v.Declared {
		key := wirings[v.Kind].key[0]
		where = fmt.Sprintf("set %s (or %s_file) in its config", key, key)
	}
	return &NoKey{model.Error{Kind: model.Auth, Provider: v.Name,
		Message: fmt.Sprintf("there is no key for %s: %s, or try the offline model with --model demo/guide", v.Name, where)}}
}

// Error says what to set.
func (e *NoKey) Error() string { return e.cause.Message }

// Unwrap makes it a model's failure of the kind auth that happened before anybody was asked.
func (e *NoKey) Unwrap() error { return &e.cause }

func kindNames() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
