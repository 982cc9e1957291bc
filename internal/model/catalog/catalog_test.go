package catalog

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryProviderIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range Providers() {
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			if seen[name] || name != strings.ToLower(name) || strings.ContainsAny(name, "/ ") {
				t.Errorf("%q is empty, taken, or no name", name)
			}
			seen[name] = true
			if found, ok := FindAlias(strings.ToUpper(name)); !ok || found.Name != p.Name {
				t.Errorf("%s is found as %q", name, found.Name)
			}
		}
		if p.DefaultModel == "" {
			t.Errorf("%s has no default model", p.Name)
		}
		if _, known := Lookup(p.Name, p.DefaultModel); !known && p.Local == nil {
			t.Errorf("%s: nothing is known of its default model %s", p.Name, p.DefaultModel)
		}
		names := p.Settings.Names()
		for setting := range p.Env {
			if !slices.Contains(names, setting) {
				t.Errorf("%s: %s has a variable and is no setting", p.Name, setting)
			}
		}
		for _, group := range p.Shown {
			for _, setting := range group {
				if len(p.Env[setting]) == 0 {
					t.Errorf("%s: %s shows that it is to be used, and no variable sets it", p.Name, setting)
				}
			}
		}
		if p.Key != KeyOptional && p.KeyVariable() == "" {
			t.Errorf("%s needs a key, and no variable holds one", p.Name)
		}
		if len(names) > 0 && !p.Settings.Identify(names) {
			t.Errorf("%s has no setting of its own, so that it cannot be told by its settings", p.Name)
		}
	}
}

// A setting that identifies a provider must not be another one's.
func TestSettingsAreOneProviders(t *testing.T) {
	t.Parallel()
	owner := map[string]string{}
	for _, p := range Providers() {
		for _, name := range p.Settings.Names() {
			if slices.Contains(generic, name) {
				continue
			}
			if other := owner[name]; other != "" {
				t.Errorf("%s is %s's and %s's", name, other, p.Name)
			}
			owner[name] = p.Name
		}
	}
}

func TestModelsHaveAProvider(t *testing.T) {
	t.Parallel()
	for _, e := range All() {
		if _, ok := Find(e.Provider); !ok {
			t.Errorf("%s/%s: there is no such provider", e.Provider, e.Model)
		}
	}
}

func TestRoutedModelsCostWhatTheyCost(t *testing.T) {
	t.Parallel()
	e, known := Lookup("openrouter", "anthropic/claude-sonnet-4.5:beta")
	there, _ := Lookup("anthropic", "claude-sonnet-4-5")
	if !known || e.Price != there.Price || e.Provider != "openrouter" || e.Model != "anthropic/claude-sonnet-4.5:beta" {
		t.Errorf("%+v, known %v", e, known)
	}
	if e, known := Lookup("openrouter", "somebody/else"); known || e.Price.Known() || e.Provider != "openrouter" {
		t.Errorf("%+v, known %v", e, known)
	}
}

func TestUnknownProvidersKeepTheirName(t *testing.T) {
	t.Parallel()
	if p, ok := Find("acme"); ok || p.Name != "acme" {
		t.Errorf("%+v, %v", p, ok)
	}
	if got := TelemetryName("acme"); got != "acme" {
		t.Error(got)
	}
	if got := TelemetryName("google"); got != "gcp.gemini" {
		t.Error(got)
	}
	if got := APIName("anthropic"); got != "anthropic-messages" {
		t.Error(got)
	}
}
