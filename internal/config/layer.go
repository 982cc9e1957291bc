package config

import (
	"slices"
	"strings"
)

// merged is what the layers come to: leaves in the order in which their paths first
// appeared, each the last layer's.
type merged struct {
	leaves []leaf
	index  map[string]int
}

// lay puts a layer over what is there. Objects merge by themselves, since leaves have
// paths; lists are one leaf and replace. A null takes away what the layers below said
// of the path and everything under it, so that the built-in default holds.
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

// clear makes room for a free value: where an object stood may come a text, and where a
// text stood an object.
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

// get gives the value that holds at a path; nil: nobody set it, or it was unset.
func (m *merged) get(path string) *leaf {
	i, ok := m.index[path]
	if !ok || m.leaves[i].value.form == isNull {
		return nil
	}
	return &m.leaves[i]
}

// names are the entries of a map, in order.
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

// under are the leaves below a path.
func (m *merged) under(path string) []leaf {
	var out []leaf
	for _, l := range m.leaves {
		if strings.HasPrefix(l.path, path+".") && l.value.form != isNull {
			out = append(out, l)
		}
	}
	return out
}
