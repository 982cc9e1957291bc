package config

import (
	"maps"
	"slices"
	"strings"

	"chorus/internal/model/catalog"
)

// environment reads the variables of all keys. An empty variable counts as not set.
func environment(r *report, env func(string) string, below *merged) []leaf {
	s := &shaper{report: r, env: env, layer: Environment}
	for _, t := range table().variables {
		for _, name := range t.variables {
			if s.variable(t.key, t.key.Path, name) {
				break
			}
		}
	}
	config := table().keys["vendors.*.config.*"]
	for _, vendor := range below.names("vendors") {
		for _, name := range vendorKeys() {
			s.variable(config, "vendors."+vendor+".config."+name, "CHORUS_VENDORS_"+shout(unescape(vendor))+"_CONFIG_"+shout(name))
		}
	}
	return s.leaves
}

// variable reads one variable. For a secret, NAME_FILE may also name a file.
func (s *shaper) variable(k *Key, path, name string) bool {
	value := s.env(name)
	if value == "" && k.Secret {
		if file := s.env(name + "_FILE"); file != "" {
			name += "_FILE"
			value = "file:" + file
		}
	}
	if value == "" {
		return false
	}
	at := Place{Layer: Environment, File: name}
	if n := s.check(k, path, &node{form: isText, text: value, at: at}); n != nil {
		s.leaves = append(s.leaves, leaf{path, k, n, at})
	}
	return true
}

// shout converts a name to a part of a variable's name.
func shout(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}

// vendorKeys returns the config keys of the vendors we know. Other keys are
// passed on too, but have no variable and no hint.
func vendorKeys() []string { return append(catalog.SettingNames(), "kind") }

// flags reads what the command line set, by key. Texts are parsed as the key's kind.
func flags(r *report, values map[string]any) []leaf {
	s := &shaper{report: r, layer: Flag, seen: map[string]field{}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := Place{Layer: Flag, File: "flag " + name}
		k := table().lookup(name)
		if k == nil {
			r.fail(at, name, "there is no key %q", name)
			continue
		}
		if n := s.check(k, name, given(values[name], at, 0)); n != nil {
			s.leaves = append(s.leaves, leaf{name, k, n, at})
		}
	}
	return s.leaves
}
