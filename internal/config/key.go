package config

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// Kind is the type of a key's value.
type Kind string

// The kinds.
const (
	Text    Kind = "text"
	Integer Kind = "whole number"
	Number  Kind = "number"
	Bool    Kind = "true or false"
	List    Kind = "list of texts"
	Free    Kind = "anything"
)

// Key describes one setting. Path is its canonical name; a "*" in it stands for a name that people choose.
type Key struct {
	Path    string
	Label   string // what people read in place of the path; a "*" in it stands for the name, as in the path
	Kind    Kind
	Default any // nil: none, the zero value
	Least   *float64
	Most    *float64
	Choices []string
	Period  bool     // Text: a duration, as HowLong parses it
	Doc     string   // one line
	Aliases []string // other paths that mean the same key, besides snake_case
	Secret  bool     // masked when shown; ${ENV} and file: are resolved late; a literal causes a warning
	Pins    bool     // allowed in a pinned message, `/settings` and agent.json
	Home    bool     // belongs to the whole process: shared.yaml, settings.json, environment and flags only
	Lines   bool     // Text or List: a list is accepted too, and a multi-line text is several values
}

// Variable returns the key's environment variable, or "" if a part of the path is free.
func (k Key) Variable() string { return variableOf(k.Path) }

// labelAt returns the label of a concrete path, with the names that people chose.
func (k Key) labelAt(path string) string {
	var label strings.Builder
	rest, parts := k.Label, strings.Split(path, ".")
	for i, part := range strings.Split(k.Path, ".") {
		if part == "*" {
			before, after, _ := strings.Cut(rest, "*")
			label.WriteString(before + unescape(parts[i]))
			rest = after
		}
	}
	return label.String() + rest
}

func variableOf(path string) string {
	if strings.Contains(path, "*") {
		return ""
	}
	return "CHORUS_" + strings.ToUpper(strings.ReplaceAll(snake(path), ".", "_"))
}

// rangeText says what the value may be: "0 to 2", "1 or more", "one of a, b".
func (k Key) rangeText() string {
	switch {
	case len(k.Choices) > 0:
		return "one of " + strings.Join(k.Choices, ", ")
	case k.Least != nil && k.Most != nil:
		return fmt.Sprintf("%s to %s", plain(*k.Least), plain(*k.Most))
	case k.Least != nil:
		return plain(*k.Least) + " or more"
	default:
		return ""
	}
}

func plain(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%.4g", f), ".0") }

// group describes an object that contains keys.
type group struct {
	path  string
	doc   string
	short string // a scalar in its place is this field
	named bool   // a map by name that is also read as a list of objects with "name"
}

// branch is one place in the tree of keys.
type branch struct {
	path   string
	key    *Key               // a leaf
	group  group              // an object
	fields map[string]*branch // by canonical name
	order  []string
	each   *branch // the "*" of a map
}

// tree is the table, arranged for reading.
type tree struct {
	root      *branch
	variables []keyVariables
	keys      map[string]*Key   // by path
	aliases   map[string]string // path to canonical path
}

// keyVariables is a key with the names of its variables, its own first.
type keyVariables struct {
	key       *Key
	variables []string
}

// lookup finds the key of a concrete path, with names in place of "*".
func (t *tree) lookup(path string) *Key {
	at := t.root
	for part := range strings.SplitSeq(path, ".") {
		next := cmp.Or(at.fields[part], at.each)
		if next == nil {
			return nil
		}
		at = next
	}
	return at.key
}

// table arranges Keys for reading, once.
var table = sync.OnceValue(func() *tree {
	t := &tree{root: &branch{fields: map[string]*branch{}}, keys: map[string]*Key{}, aliases: map[string]string{}}
	for _, k := range Keys() {
		t.grow(k.Path).key = &k
		t.keys[k.Path] = &k
		pair := keyVariables{key: &k, variables: []string{variableOf(k.Path)}}
		for _, alias := range k.Aliases {
			t.aliases[alias] = k.Path
			pair.variables = append(pair.variables, variableOf(alias))
		}
		if pair.variables[0] != "" {
			t.variables = append(t.variables, pair)
		}
	}
	for _, g := range groups() {
		t.grow(g.path).group = g
	}
	return t
})

func (t *tree) grow(path string) *branch {
	at, sofar := t.root, ""
	for part := range strings.SplitSeq(path, ".") {
		sofar = join(sofar, part)
		next := at.fields[part]
		if part == "*" {
			next = at.each
		}
		if next == nil {
			next = &branch{path: sofar, fields: map[string]*branch{}}
			if part == "*" {
				at.each = next
			} else {
				at.fields[part] = next
				at.order = append(at.order, part)
			}
		}
		at = next
	}
	return at
}

// join joins the parts of a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// snake converts a camelCase path to snake_case: maxTokens becomes max_tokens.
func snake(path string) string {
	var b strings.Builder
	for _, r := range path {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// camel converts a snake_case name to camelCase.
func camel(name string) string {
	var b strings.Builder
	up := false
	for i, r := range name {
		if r == '_' && i > 0 {
			up = true
			continue
		}
		if up {
			r, up = unicode.ToUpper(r), false
		}
		b.WriteRune(r)
	}
	return b.String()
}
