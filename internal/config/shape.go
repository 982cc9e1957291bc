package config

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/suggest"
)

// leaf is one value of a source under its canonical path. Names that people choose are
// escaped in the path, so that a dot always separates levels. A null leaf unsets; an
// object leaf only says that something of that name exists.
type leaf struct {
	path  string
	key   *Key // nil: a null or an object above keys
	value *node
	at    Place
}

// shaper turns what was written into leaves: canonical names, checked types and ranges.
type shaper struct {
	report *report
	env    func(string) string // nil: ${…} is plain text here
	layer  Layer
	leaves []leaf
	seen   map[string]field // by path, as written
}

// shape reads a parsed source and reports every mistake. The rest can be merged.
func shape(r *report, layer Layer, env func(string) string, root *node) []leaf {
	if root == nil {
		return nil
	}
	if layer.outside() {
		env = nil
	}
	s := &shaper{report: r, env: env, layer: layer, seen: map[string]field{}}
	s.object(table().root, "", root)
	return s.leaves
}

// object reads the fields of an object that b describes.
func (s *shaper) object(b *branch, path string, n *node) {
	for _, f := range n.fields {
		target, at := s.find(b, path, f)
		if target == nil {
			continue
		}
		if s.claim(at, f) {
			s.value(target, at, f)
		}
	}
}

// claim reports whether nothing else in the source set the path under another spelling.
func (s *shaper) claim(path string, f field) bool {
	if before, twice := s.seen[path]; twice {
		s.report.fail(f.at, path, "%q and %q (line %d) are the same key; keep one", f.name, before.name, before.at.Line)
		return false
	}
	s.seen[path] = f
	return true
}

// find returns the branch of a field, and its path.
func (s *shaper) find(b *branch, path string, f field) (*branch, string) {
	name := f.name
	if next := b.fields[name]; next != nil {
		return next, join(path, name)
	}
	if c := camel(name); b.fields[c] != nil && snake(c) == name {
		return b.fields[c], join(path, c)
	}
	for _, spelling := range []string{name, camel(name)} {
		to, ok := table().aliases[join(b.path, spelling)]
		if !ok {
			continue
		}
		if last, here := strings.CutPrefix(to, join(b.path, "")); here && b.fields[last] != nil {
			return b.fields[last], join(path, last) // another spelling of a field of this branch
		}
		return table().branch(to), to
	}
	if b.each != nil {
		if strings.TrimSpace(name) == "" {
			s.report.fail(f.at, path, "an entry of %s needs a name", shownPath(path))
			return nil, ""
		}
		return b.each, join(path, escape(s.freeName(b, f)))
	}
	s.unknown(b, path, f)
	return nil, ""
}

// freeName returns a name that people chose. A vendor's config keys are always
// converted to snake_case, and are mostly ones we know.
func (s *shaper) freeName(b *branch, f field) string {
	if b.path != "vendors.*.config" {
		return f.name
	}
	name := snake(f.name)
	if known := vendorKeys(); !slices.Contains(known, strings.TrimSuffix(name, "_file")) {
		s.report.warn(f.at, b.path, "no vendor we know has a setting %q%s", f.name, suggest.Hint(name, known))
	}
	return name
}

func (t *tree) branch(path string) *branch {
	at := t.root
	for part := range strings.SplitSeq(path, ".") {
		if part == "*" {
			at = at.each
		} else {
			at = at.fields[part]
		}
	}
	return at
}

// unknown reports an unknown key: an error in files, a warning in what people write elsewhere.
func (s *shaper) unknown(b *branch, path string, f field) {
	names := slices.Clone(b.order)
	for alias := range table().aliases {
		if rest, ok := strings.CutPrefix(alias, join(path, "")); ok && !strings.Contains(rest, ".") {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	text := fmt.Sprintf("unknown key %q", f.name)
	if why, known := dropped()[snake(camel(f.name))]; known && path == "" {
		text += ": " + why
	} else if hint := suggest.Hint(camel(f.name), names); hint != "" {
		text += hint
	} else if path != "" && len(names) > 0 {
		text += fmt.Sprintf("; %s has %s", shownPath(path), strings.Join(b.order, ", "))
	}
	if s.layer.outside() {
		s.report.warn(f.at, join(path, f.name), "%s; it is left out", text)
		return
	}
	s.report.fail(f.at, join(path, f.name), "%s", text)
}

// value reads the value of a path.
func (s *shaper) value(b *branch, path string, f field) {
	if !s.allowed(b, path, f) {
		return
	}
	n := f.value
	switch {
	case n.form == isNull:
		if s.layer != ParentPin && s.layer != ChannelPin { // a pin adds values and removes none
			s.leaves = append(s.leaves, leaf{path, b.key, n, n.at})
		}
	case b.key != nil && b.key.Kind == Free:
		s.free(b.key, path, n)
	case b.key != nil:
		if n = s.check(b.key, path, n); n != nil {
			s.leaves = append(s.leaves, leaf{path, b.key, n, n.at})
		}
	case n.form == isObject:
		if isEntry(b) {
			s.leaves = append(s.leaves, leaf{path, nil, &node{form: isObject, at: f.at}, f.at})
		}
		s.object(b, path, n)
	case n.form == isList && b.group.named:
		s.list(b, path, n)
	case b.group.short != "" && n.form != isList:
		if isEntry(b) {
			s.leaves = append(s.leaves, leaf{path, nil, &node{form: isObject, at: f.at}, f.at})
		}
		if short := join(path, b.group.short); s.claim(short, f) {
			s.value(b.fields[b.group.short], short, f)
		}
	default:
		s.report.fail(n.at, path, "%s must be an object with keys of its own, not %s", shownPath(path), n.said())
	}
}

// isEntry distinguishes an entry of a map by name from other objects.
func isEntry(b *branch) bool { return strings.HasSuffix(b.path, ".*") && len(b.fields) > 0 }

// allowed reports whether the layer may set the key at all.
func (s *shaper) allowed(b *branch, path string, f field) bool {
	k := b.first()
	switch {
	case s.layer.outside() && !s.layer.sets(k):
		s.report.warn(f.at, path, "%s cannot be set in %s; it is left out", shownPath(path), s.where())
		return false
	case !s.layer.sets(k):
		s.report.fail(f.at, path, "%s belongs to the whole process: set it in shared.yaml", shownPath(path))
		return false
	}
	return true
}

// sets reports whether a layer may set the key.
func (l Layer) sets(k *Key) bool {
	switch {
	case l.outside(): // in a pin, the profile is one more limit
		return k.Pins || k.Path == "permissions"
	default:
		return !k.Home || l != Guild && l != BotFile && l != BotGuild
	}
}

func (s *shaper) where() string {
	switch s.layer {
	case AgentFile:
		return "agent.json"
	case GuildSettings:
		return "a guild's settings"
	default:
		return "a pinned message"
	}
}

// first returns a key at or below a branch: all of them are set in the same places.
func (b *branch) first() *Key {
	for b.key == nil {
		switch {
		case len(b.order) > 0:
			b = b.fields[b.order[0]]
		default:
			b = b.each
		}
	}
	return b.key
}

// list reads Chapter3's form of a map: a list of objects that contain their name.
func (s *shaper) list(b *branch, path string, n *node) {
	for _, item := range n.items {
		name := ""
		entry := &node{form: isObject, at: item.at}
		for _, f := range item.fields {
			if f.name == "name" && f.value.form == isText {
				name = f.value.text
				continue
			}
			entry.fields = append(entry.fields, f)
		}
		if item.form != isObject || name == "" {
			s.report.fail(item.at, path, "each entry of the list %s must be an object with a name", shownPath(path))
			continue
		}
		s.object(b, path, &node{form: isObject, at: item.at, fields: []field{{name, item.at, entry}}})
	}
}

// free takes any value: objects level by level, so that they merge, and everything else as it is.
func (s *shaper) free(k *Key, path string, n *node) {
	if n.form != isObject {
		if expanded := s.text(path, n); expanded != nil {
			s.leaves = append(s.leaves, leaf{path, k, expanded, n.at})
		}
		return
	}
	for _, f := range n.fields {
		s.free(k, join(path, escape(f.name)), f.value)
	}
}

// text expands the variables in a text, or returns nil if it cannot.
func (s *shaper) text(path string, n *node) *node {
	if n.form != isText || s.env == nil || !strings.Contains(n.text, "${") {
		return n
	}
	text, err := expand(n.text, s.env)
	if err != nil {
		s.report.fail(n.at, path, "%s: %s", shownPath(path), joinLines(err))
		return nil
	}
	out := *n
	out.text = text
	return &out
}

func joinLines(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// escape replaces the dots of a name in a path; unescape restores them.
func escape(name string) string {
	return strings.NewReplacer("%", "%25", ".", "%2E").Replace(name)
}

func unescape(part string) string {
	return strings.NewReplacer("%2E", ".", "%25", "%").Replace(part)
}

// shownPath returns a path for people.
func shownPath(path string) string { return unescape(path) }
