// Package catalog is the one table of what is known about providers and their models
// before anybody is asked: names, settings, abilities, limits and prices.
//
// It promises to be pure data: it reads no file, no environment and no network. Code
// elsewhere asks the table for a property and never compares a provider's name, so that
// a new provider needs its package, a row here and a line where providers are made
// (docs/guides/add-a-provider.md). internal/providers_test.go checks this.
package catalog

import (
	"slices"
	"strings"
)

// Provider is a row of the table: everything that differs between providers and that
// code outside of the provider's own package has to know.
type Provider struct {
	// Name stands before the slash of a model's name, in the configuration and in
	// the journal. Aliases are other names under which it may be declared.
	Name    string
	Aliases []string

	DefaultModel string   // what is used when no model is named
	BaseURL      string   // where it is reached; "": that depends on its settings
	Prefixes     []string // beginnings of model names that are always this provider's

	// Settings are what it can be configured with, Env the variables from which a
	// setting is read when no file has it (each also as NAME_FILE).
	Settings Settings
	Env      map[string][]string
	Key      KeyRule
	// Shown are the settings by which somebody shows that the provider is to be used,
	// where the key alone does not: of each group one must be set. Without it a
	// profile for other work, or a program that happens to run, would be used.
	Shown [][]string
	// Credentials are the settings without which it looks for credentials of its own,
	// which may change without any setting having changed; nil: it never does.
	Credentials []string

	Offline    bool   // answers without a network and without a key
	Local      *Local // runs on the user's own machine; nil: it does not
	BaseModels bool   // its models continue a text and know no conversation
	// Compatible: servers of other makers speak its protocol. One with another name
	// and address has models of its own, which are not in this catalog.
	Compatible bool
	// Assumed: a server of which only the address is known is taken for one of these.
	Assumed bool

	// MaxStops is how many stop sequences a request may have; 0: any number. Whoever writes a
	// request asks TraitsOf, which knows where that differs between models.
	MaxStops int
	traits   func(model string, t *Traits) // what differs between its models; nil: nothing
	// JoinText: it has no cache marks and reads every block of text as a turn of its
	// own, so that text must not be divided into blocks.
	JoinText    bool
	ExtraFields bool // the body of a request may have fields from the configuration

	Telemetry string // its name in OpenTelemetry's conventions; "": Name
	API       string // its protocol's name in context.jsonl; "": Name

	// lookup finds a model, which is how prices and limits are known; nil: in the
	// table of models by its name.
	lookup func(provider, model string) (Entry, bool)
	// unknown is what is assumed of a model that was not found; nil: see Unknown.
	unknown func(model string) Entry
}

// KeyRule says when a key is needed.
type KeyRule int

// The rules.
const (
	KeyNeeded        KeyRule = iota
	KeyUnlessAddress         // whoever runs the server at another address may need none
	KeyOptional              // there is none, or the provider finds credentials by itself
)

// Settings are the names of a provider's settings. Of several names for the same
// thing the first that is set counts.
type Settings struct {
	Key     []string // one API key or several; each also as NAME_file
	Address []string
	Other   []Setting
}

// Setting is what a provider is made with beside key and address.
type Setting struct {
	Name    string
	Aliases []string
	Secret  bool
}

// Local is how people start a provider's server and get models for it.
type Local struct{ Start, Pull string }

// generic are the settings that say nothing about whose they are.
var generic = []string{"api_key", "api_key_file", "api_base", "base_url", "region"}

// Names lists every name that a setting may have.
func (s Settings) Names() []string {
	var out []string
	for _, name := range s.Key {
		out = append(out, name, name+"_file")
	}
	out = append(out, s.Address...)
	for _, o := range s.Other {
		out = append(append(out, o.Name), o.Aliases...)
	}
	return out
}

// Identify reports whether one of these settings is this provider's and nobody else's.
func (s Settings) Identify(given []string) bool {
	own := s.Names()
	return slices.ContainsFunc(given, func(name string) bool { return slices.Contains(own, name) && !slices.Contains(generic, name) })
}

// Free reports whether asking costs nothing.
func (p Provider) Free() bool { return p.Offline || p.Local != nil }

// KeyVariable is the environment variable for its key; "": it has none.
func (p Provider) KeyVariable() string {
	if len(p.Settings.Key) == 0 {
		return ""
	}
	return p.Env[p.Settings.Key[0]][0]
}

// Find gives the row of a provider. For any other name, which may be a server of
// somebody's own, it gives a row with the name alone, and false.
func Find(name string) (Provider, bool) {
	i := slices.IndexFunc(providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{Name: name}, false
	}
	return providers[i], true
}

// FindAlias is Find for what somebody called a provider: in any case, also by an alias.
func FindAlias(name string) (Provider, bool) {
	name = strings.ToLower(name)
	for _, p := range providers {
		if p.Name == name || slices.Contains(p.Aliases, name) {
			return p, true
		}
	}
	return Provider{}, false
}

// Providers lists the rows in the order in which a default is looked for.
func Providers() []Provider { return slices.Clone(providers) }

// Names lists the providers' names by the alphabet, those for which keep is true; nil: all.
func Names(keep func(Provider) bool) []string {
	var out []string
	for _, p := range providers {
		if keep == nil || keep(p) {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// SettingNames lists the names of all providers' settings, each once and without the
// variants that name a file.
func SettingNames() []string {
	var out []string
	for _, p := range providers {
		out = append(out, p.Settings.Names()...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return strings.HasSuffix(name, "_file") })
}

// TelemetryName is what a provider is called in traces and metrics.
func TelemetryName(provider string) string {
	if p, _ := Find(provider); p.Telemetry != "" {
		return p.Telemetry
	}
	return provider
}

// APIName is what a provider's protocol is called in context.jsonl.
func APIName(provider string) string {
	if p, _ := Find(provider); p.API != "" {
		return p.API
	}
	return provider
}
