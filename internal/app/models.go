package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"chorus/internal/agent"
	"chorus/internal/chat"
	"chorus/internal/home"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/model/anthropic"
	"chorus/internal/model/demo"
	"chorus/internal/model/openai"
)

// Offline is the model that needs no key.
const Offline = "demo/guide"

// Models knows the providers and turns names into models.
type Models struct {
	env      func(string) string
	provider string // the default provider, from settings
	model    string // the default model, from settings

	mu   sync.Mutex
	made map[string]model.Model
}

// NewModels reads keys from env when a provider is first used.
func NewModels(env func(string) string, provider, name string) *Models {
	return &Models{env: env, provider: provider, model: name, made: map[string]model.Model{}}
}

// providers are the names people may put before the slash, with the model each
// stands for when none is named.
var providers = map[string]string{
	"anthropic": "claude-sonnet-4-5",
	"openai":    "gpt-5-mini",
	"demo":      "guide",
}

// Providers lists them.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

// Default is the model when nobody chose one: the settings', else the first
// provider with a key, else the offline one.
func (m *Models) Default() string {
	switch {
	case m.model != "":
		return m.model
	case m.provider != "":
		return m.provider + "/" + providers[m.provider]
	case m.has("ANTHROPIC_API_KEY"):
		return "anthropic/" + providers["anthropic"]
	case m.has("OPENAI_API_KEY") || m.env("OPENAI_BASE_URL") != "":
		return "openai/" + providers["openai"]
	default:
		return Offline
	}
}

func (m *Models) has(name string) bool { return m.env(name) != "" || m.env(name+"_FILE") != "" }

// Name makes one full name of what somebody chose; both may be empty.
func (m *Models) Name(provider, name string) (string, error) {
	if provider != "" {
		if _, ok := providers[provider]; !ok {
			return "", fmt.Errorf("unknown provider %q; there are %s", provider, strings.Join(Providers(), ", "))
		}
		if name == "" {
			return provider + "/" + providers[provider], nil
		}
		return provider + "/" + strings.TrimPrefix(name, provider+"/"), nil
	}
	if name == "" {
		name = m.Default()
	}
	if p, rest, ok := strings.Cut(name, "/"); ok {
		if _, known := providers[p]; known && rest != "" {
			return name, nil
		}
	}
	if p := owner(name); p != "" {
		return p + "/" + name, nil
	}
	return "", fmt.Errorf("unknown model %q; %sname it as provider/model (providers: %s), or see `chorus models`",
		name, nearModel(name), strings.Join(Providers(), ", "))
}

// owner guesses whose model a bare name is.
func owner(name string) string {
	for _, e := range model.All() {
		if e.Model == name {
			return e.Provider
		}
	}
	for prefix, p := range map[string]string{"claude": "anthropic", "gpt-": "openai", "chatgpt-": "openai",
		"o1": "openai", "o3": "openai", "o4": "openai"} {
		if strings.HasPrefix(name, prefix) {
			return p
		}
	}
	return ""
}

// nearModel names the model that was probably meant: a provider's default if it
// fits, else the first that holds the word. Hyphens and dots are easily forgotten.
func nearModel(name string) string {
	bare := func(s string) string {
		return strings.NewReplacer("-", "", ".", "", "_", "").Replace(strings.ToLower(s))
	}
	word := bare(name)
	if len(word) < 3 {
		return ""
	}
	near := func(p, name string) string { return fmt.Sprintf("did you mean %s/%s? If not, ", p, name) }
	for _, p := range Providers() {
		if strings.Contains(bare(providers[p]), word) {
			return near(p, providers[p])
		}
	}
	for _, e := range model.All() {
		if strings.Contains(bare(e.Model), word) {
			return near(e.Provider, e.Model)
		}
	}
	return ""
}

// Resolve makes a full name into a model that can be asked.
func (m *Models) Resolve(full string) (agent.Engine, error) {
	p, name, ok := strings.Cut(full, "/")
	if !ok {
		return agent.Engine{}, fmt.Errorf("model %q has no provider", full)
	}
	entry, _ := model.Lookup(p, name)
	made, err := m.make(p)
	if err != nil {
		return agent.Engine{}, err
	}
	return agent.Engine{Model: made, Name: name, Entry: entry}, nil
}

func (m *Models) make(provider string) (model.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if made := m.made[provider]; made != nil {
		return made, nil
	}
	made, err := m.fresh(provider)
	if err == nil {
		m.made[provider] = made
	}
	return made, err
}

func (m *Models) fresh(provider string) (model.Model, error) {
	switch provider {
	case "demo":
		return demo.New(), nil
	case "anthropic":
		key, err := home.Secret(m.env, "ANTHROPIC_API_KEY")
		if err != nil {
			return nil, err
		}
		if key == "" {
			return nil, noKey("anthropic", "ANTHROPIC_API_KEY")
		}
		return anthropic.New(anthropic.Options{APIKey: key, BaseURL: m.env("ANTHROPIC_BASE_URL")}), nil
	case "openai":
		key, err := home.Secret(m.env, "OPENAI_API_KEY")
		if err != nil {
			return nil, err
		}
		if key == "" && m.env("OPENAI_BASE_URL") == "" {
			return nil, noKey("openai", "OPENAI_API_KEY")
		}
		return openai.New(openai.Options{APIKey: key, BaseURL: m.env("OPENAI_BASE_URL")}), nil
	default:
		return nil, fmt.Errorf("unknown provider %q; there are %s", provider, strings.Join(Providers(), ", "))
	}
}

func noKey(provider, name string) error {
	return &missingKey{model.Error{Kind: model.Auth, Provider: provider,
		Message: fmt.Sprintf("there is no key for %s: set %s (or %s_FILE), or try the offline model with --model %s", provider, name, name, Offline)}}
}

// missingKey is a model's failure that happened before anybody was asked.
type missingKey struct{ cause model.Error }

func (e *missingKey) Error() string { return e.cause.Message }

// Unwrap makes it one of the kind auth.
func (e *missingKey) Unwrap() error { return &e.cause }

// Price is what a model costs and the most it can put out.
func (m *Models) Price(full string) (ledger.Price, int) {
	p, name, _ := strings.Cut(full, "/")
	e, _ := model.Lookup(p, name)
	return e.Price, e.MaxOutput
}

// settings are the numbers a run with this model is rendered with.
func runSettings(e model.Entry, base chat.Settings) chat.Settings {
	if base.ContextWindow == 0 {
		base.ContextWindow = e.ContextWindow
	}
	if base.MaxTokens == 0 {
		// Enough for a long file, and no more than the model allows.
		base.MaxTokens = min(16384, e.MaxOutput)
	}
	return base
}
