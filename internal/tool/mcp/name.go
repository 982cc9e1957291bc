package mcp

import (
	"slices"
	"strings"
)

const (
	longestName   = 64 // the most that providers accept
	longestServer = 32 // leaves the other half to the tool
	hashTail      = 9  // "_" and eight digits
)

// clean replaces every character that a tool name may not contain by "_".
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// fit shortens a name and keeps it unique with a tail.
func fit(name, whole string, most int) string {
	if len(name) <= most {
		return name
	}
	return name[:most-hashTail] + "_" + whole
}

// serverKeys returns the parts of tool names that stand for the servers. They have no two underscores in a
// row or at the end, so that "mcp__a__" belongs to one server only, and they are unique.
func serverKeys(names []string) map[string]string {
	key := func(name string) string {
		k := clean(name)
		for strings.Contains(k, "__") {
			k = strings.ReplaceAll(k, "__", "_")
		}
		k = fit(strings.Trim(k, "_"), short(name), longestServer)
		if k == "" {
			return short(name)
		}
		return k
	}
	return distinct(names, key, func(k, name string) string {
		return strings.Trim(k[:min(len(k), longestServer-hashTail)], "_") + "_" + short(name)
	})
}

// toolNames returns the names of one server's tools for models and rules.
func toolNames(server string, names []string) map[string]string {
	prefix := "mcp__" + server + "__"
	room := longestName - len(prefix)
	inner := distinct(names,
		func(name string) string { return fit(clean(name), short(name), room) },
		func(k, name string) string { return k[:min(len(k), room-hashTail)] + "_" + short(name) })
	for name, k := range inner {
		inner[name] = prefix + k
	}
	return inner
}

// distinct gives every name a unique key. If several names have the same key, the one equal
// to it keeps it and the others get a tail, regardless of their order.
func distinct(names []string, key func(string) string, tail func(key, name string) string) map[string]string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	count := map[string]int{}
	for _, name := range names {
		count[key(name)]++
	}
	out, taken := map[string]string{}, map[string]bool{}
	for _, name := range names {
		if k := key(name); k == name || count[k] == 1 && !slices.Contains(names, k) {
			out[name], taken[k] = k, true
		}
	}
	for _, name := range names {
		if _, ok := out[name]; ok {
			continue
		}
		k := tail(key(name), name)
		for salt := name; taken[k]; {
			salt += "+"
			k = tail(key(name), salt)
		}
		out[name], taken[k] = k, true
	}
	return out
}
