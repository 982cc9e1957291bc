package modelrouter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"chorus/internal/datadir"
	"chorus/internal/model/catalog"
)

// BuiltIn returns the vendors that follow from the environment alone, in the order in which a
// default is looked for. env is called again whenever a key is needed.
func BuiltIn(env func(string) string) []Vendor {
	var out []Vendor
	for _, p := range catalog.Providers() {
		out = append(out, Vendor{Name: p.Name, Kind: Kind(p.Name), Config: fromEnv(p, env)})
	}
	return out
}

func fromEnv(p catalog.Provider, env func(string) string) func(string) (string, error) {
	return func(key string) (string, error) {
		for _, variable := range p.Env[key] {
			if value, err := datadir.Secret(env, variable); value != "" || err != nil {
				return value, err
			}
		}
		return "", nil
	}
}

// Declare returns a vendor from a file's settings. The kind may be omitted: it follows from the name or from
// the settings. A value may be ${VARIABLE} or file:PATH, which are resolved each time the value is needed.
func Declare(name string, kind Kind, settings map[string]string, provides []string, env func(string) string) (Vendor, error) {
	v := Vendor{Name: name, Kind: kind, Declared: true}
	if name == "" || strings.ContainsAny(name, "/ \t\n") {
		return v, fmt.Errorf("vendor %q: a name has neither slashes nor spaces, since it is put before the slash of a model's name", name)
	}
	var err error
	if v.Kind == "" {
		if v.Kind, err = Infer(name, slices.Collect(maps.Keys(settings))); err != nil {
			return v, err
		}
	} else if !v.Kind.Known() {
		return v, unknownKind(name, kind)
	}
	for _, p := range provides {
		pattern, err := Compile(p)
		if err != nil {
			return v, fmt.Errorf("vendor %s: %w", name, err)
		}
		v.Provides = append(v.Provides, pattern)
	}
	v.Config = func(key string) (string, error) { return Expand(settings[key], env) }
	return v, nil
}

// Expand resolves a config value that is a reference: file:PATH is the file's
// content, ${NAME} a variable (or the file that NAME_FILE names).
func Expand(value string, env func(string) string) (string, error) {
	if path, ok := strings.CutPrefix(value, "file:"); ok {
		return datadir.SecretFile(strings.TrimPrefix(path, "//"))
	}
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(value, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			out.WriteString(value)
			return out.String(), nil
		}
		text, err := datadir.Secret(env, name)
		if err != nil {
			return "", err
		}
		out.WriteString(before)
		out.WriteString(text)
		value = after
	}
}

// Infer returns the kind of a vendor that does not state it: by its name if that is a kind's, or else by
// its settings. If a vendor has the keys of two kinds, or of none, that is an error.
func Infer(name string, settings []string) (Kind, error) {
	if p, ok := catalog.FindAlias(name); ok {
		return Kind(p.Name), nil
	}
	var found []string
	assumed := ""
	for _, p := range catalog.Providers() {
		if p.Settings.Identify(settings) {
			found = append(found, p.Name)
		}
		if p.Assumed {
			assumed = p.Name
		}
	}
	switch {
	case len(found) == 1:
		return Kind(found[0]), nil
	case len(found) > 1:
		return "", fmt.Errorf("vendor %s: its config has the settings of %s; make a vendor of each, or say kind: in its config", name, strings.Join(found, " and "))
	case slices.Contains(settings, "api_base") || slices.Contains(settings, "base_url"):
		return Kind(assumed), nil // only an address: nearly every server is compatible with OpenAI's
	default:
		return "", fmt.Errorf("vendor %s: its config has no key that says whose it is; say kind: there, with one of %s", name, kindNames())
	}
}

// Merge puts declared vendors before the built-in ones. A declared vendor with a built-in name
// replaces that vendor, and what it does not set comes from the environment.
func Merge(declared, built []Vendor) []Vendor {
	out := slices.Clone(declared)
	for _, b := range built {
		i := slices.IndexFunc(out, func(v Vendor) bool { return v.Name == b.Name })
		if i < 0 {
			out = append(out, b)
			continue
		}
		if v := out[i]; v.Kind == b.Kind {
			out[i].Config = v.or(b)
		}
	}
	return out
}

// or asks v first, for key and address whatever the setting is called there.
func (v Vendor) or(b Vendor) func(string) (string, error) {
	group := func(key string) []string {
		s := v.Provider().Settings
		for _, names := range [][]string{s.Key, s.Address} {
			if slices.Contains(names, strings.TrimSuffix(key, "_file")) {
				return names
			}
		}
		return []string{key}
	}
	return func(key string) (string, error) {
		text, err := v.Config(key)
		if text != "" || err != nil || b.Config == nil {
			return text, err
		}
		for _, other := range group(key) {
			if has, err := v.Config(other); has != "" || err != nil {
				return "", err
			}
			if has, err := v.Config(other + "_file"); has != "" || err != nil {
				return "", err
			}
		}
		return b.Config(key)
	}
}
