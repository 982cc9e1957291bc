package config

import (
	"slices"
	"strings"
)

// merged is the result of the layers: leaves in the order in which their
// paths first appeared, each with the last layer's value.
type merged struct {
	leaves []leaf
	index  map[string]int
}

// lay puts a layer on top. Objects merge naturally, because leaves have paths; a list is
// one leaf and replaces the whole list. A null removes the path and everything under it
// from the layers below, so that the built-in default applies.
func (m *merged) lay(leaves []leaf) {
	if m.index == nil {
		m.index = map[string]int{}
	}
	for _, l := range leaves {
		if l.value.form == isNull {
			m.unset(l.path)
			if l.key != nil {
				m.put(l)
			}
			continue
		}
		if l.key != nil && l.key.Kind == Free {
			m.clear(l.path)
		}
		m.put(l)
	}
}

func (m *merged) put(l leaf) {
	if i, ok := m.index[l.path]; ok {
		m.leaves[i] = l
		return
	}
	m.index[l.path] = len(m.leaves)
	m.leaves = append(m.leaves, l)
}

// unset removes a path and what is below it.
func (m *merged) unset(path string) { m.remove(path, true) }

// clear makes room for a free value: a text may replace an object, and an object a text.
func (m *merged) clear(path string) {
	m.remove(path, false)
	for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path[:i], '.') {
		if at, ok := m.index[path[:i]]; ok && m.leaves[at].value.form != isObject {
			m.remove(path[:i], true)
		}
	}
}

func (m *merged) remove(path string, itself bool) {
	gone := func(l leaf) bool { return itself && l.path == path || strings.HasPrefix(l.path, path+".") }
	if !slices.ContainsFunc(m.leaves, gone) {
		return
	}
	m.leaves = slices.DeleteFunc(m.leaves, gone)
	clear(m.index)
	for i, l := range m.leaves {
		m.index[l.path] = i
	}
}

// get returns the value in force at a path, or nil if nobody set it or it was unset.
func (m *merged) get(path string) *leaf {
	i, ok := m.index[path]
	if !ok || m.leaves[i].value.form == isNull {
		return nil
	}
	return &m.leaves[i]
}

// names returns the entries of a map, in order.
func (m *merged) names(path string) []string {
	var out []string
	for _, l := range m.leaves {
		rest, ok := strings.CutPrefix(l.path, path+".")
		if !ok || l.value.form == isNull {
			continue
		}
		name, _, _ := strings.Cut(rest, ".")
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// under returns the leaves below a path.
func (m *merged) under(path string) []leaf {
	var out []leaf
	for _, l := range m.leaves {
		if strings.HasPrefix(l.path, path+".") && l.value.form != isNull {
			out = append(out, l)
		}
	}
	return out
}
