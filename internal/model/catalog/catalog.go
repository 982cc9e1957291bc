// Package catalog is the single table of what is known about providers and their
// models in advance: names, settings, abilities, limits and prices.
//
// It promises to be pure data: it reads no file, no environment and no network. Code elsewhere
// asks the table for a property and never compares a provider's name, so that a new provider
// needs its package, a row here and a line where providers are created
// (docs/guides/add-a-provider.md). internal/providers_test.go checks this.
package catalog

import (
	"slices"
	"strings"
)

// Provider is a row of the table: every difference between providers that
// code outside the provider's own package has to know.
type Provider struct {
	// Name is what precedes the slash of a model's name, in the configuration and in the
	// journal. Aliases are other names under which the provider may be declared.
	Name    string
	Aliases []string

	DefaultModel string   // used if no model is named
	BaseURL      string   // where it is reached; "": that depends on its settings
	Prefixes     []string // prefixes of model names that are always this provider's

	// Settings are what it can be configured with. Env lists the variables from which a
	// setting is read if no file has it (each also as NAME_FILE).
	Settings Settings
	Env      map[string][]string
	Key      KeyRule
	// Shown are the settings by which somebody shows that the provider should be used, if the
	// key alone does not: one setting of each group must be set. Otherwise a profile for other
	// work, or a program that happens to run, would be used.
	Shown [][]string
	// Credentials are the settings without which it finds credentials by itself, which may
	// then change without any setting changing; nil: it never does.
	Credentials []string

	Offline    bool   // answers without a network and without a key
	Local      *Local // runs on the user's own machine; nil: it does not
	BaseModels bool   // its models continue a text and have no notion of a conversation
	// Compatible means that other servers speak its protocol. Such a server, with its own name
	// and address, has its own models, which are not in this catalog.
	Compatible bool
	// Assumed means that a server of which only the address is known is taken for one of these.
	Assumed bool

	// MaxStops is how many stop sequences a request may have; 0: any number. Code that writes a
	// request uses TraitsOf, which knows the differences between models.
	MaxStops int
	traits   func(model string, t *Traits) // how its models differ; nil: not at all
	// JoinText means that it has no cache marks and reads every block of text as a
	// separate turn, so text must not be divided into blocks.
	JoinText    bool
	ExtraFields bool // the body of a request may have fields from the configuration

	Telemetry string // its name in OpenTelemetry's conventions; "": Name
	API       string // its protocol's name in context.jsonl; "": Name

	// lookup finds a model, and with it prices and limits; nil: by its name in the table of models.
	lookup func(provider, model string) (Entry, bool)
	// unknown returns what is assumed about a model that was not found; nil: see Unknown.
	unknown func(model string) Entry
}

// KeyRule says when a key is needed.
type KeyRule int

// The rules.
const (
	KeyNeeded        KeyRule = iota
	KeyUnlessAddress         // a server at another address may need none
	KeyOptional              // there is none, or the provider finds credentials by itself
)

// Settings are the names of a provider's settings. If several names mean
// the same thing, the first that is set applies.
type Settings struct {
	Key     []string // one API key or several; each also as NAME_file
	Address []string
	Other   []Setting
}

// Setting is an option of a provider besides key and address.
type Setting struct {
	Name    string
	Aliases []string
	Secret  bool
}

// Local says how people start a provider's server and get models for it.
type Local struct{ Start, Pull string }

// generic are the settings that do not identify a provider.
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

// Identify reports whether one of these settings is used only by this provider.
func (s Settings) Identify(given []string) bool {
	own := s.Names()
	return slices.ContainsFunc(given, func(name string) bool { return slices.Contains(own, name) && !slices.Contains(generic, name) })
}

// Free reports whether requests cost nothing.
func (p Provider) Free() bool { return p.Offline || p.Local != nil }

// KeyVariable returns the environment variable for its key, or "".
func (p Provider) KeyVariable() string {
	if len(p.Settings.Key) == 0 {
		return ""
	}
	return p.Env[p.Settings.Key[0]][0]
}

// Find returns the row of a provider. For any other name, which may be somebody's
// own server, it returns a row with only the name, and false.
func Find(name string) (Provider, bool) {
	i := slices.IndexFunc(providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{Name: name}, false
	}
	return providers[i], true
}

// FindAlias is like Find, but ignores case and also accepts an alias.
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

// Names lists the providers' names in alphabetical order, those for which keep is true; nil: all.
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

// SettingNames lists the names of all providers' settings, each once
// and without the variants that name a file.
func SettingNames() []string {
	var out []string
	for _, p := range providers {
		out = append(out, p.Settings.Names()...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return strings.HasSuffix(name, "_file") })
}

// TelemetryName returns what a provider is called in traces and metrics.
func TelemetryName(provider string) string {
	if p, _ := Find(provider); p.Telemetry != "" {
		return p.Telemetry
	}
	return provider
}

// APIName returns what a provider's protocol is called in context.jsonl.
func APIName(provider string) string {
	if p, _ := Find(provider); p.API != "" {
		return p.API
	}
	return provider
}
