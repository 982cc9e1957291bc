package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Typed is one value that somebody typed for a key.
type Typed struct {
	Path  string // canonical
	Value any    // as encoding/json represents it
}

// Read reads a value that somebody typed for a key, checked as for the layer. The key may be spelt
// as in files. The error says what is wrong in the same words as for files.
func (l Layer) Read(key, text string) (Typed, error) {
	s, b, path, err := l.find(key)
	if err != nil {
		return Typed{}, err
	}
	n := s.check(b.key, path, convert(b.key, &node{form: isText, text: text, at: Place{Layer: l}}))
	if n == nil {
		return Typed{}, s.first()
	}
	return Typed{Path: path, Value: n.plain()}, nil
}

// Key finds the key that somebody means, if the layer may set it.
func (l Layer) Key(name string) (Key, error) {
	_, b, _, err := l.find(name)
	if err != nil {
		return Key{}, err
	}
	return *b.key, nil
}

// Keys returns the keys that the layer may set, in the table's order, without those with a free name.
func (l Layer) Keys() []Key {
	return slices.DeleteFunc(Keys(), func(k Key) bool { return strings.Contains(k.Path, "*") || !l.sets(&k) })
}

// Knows reports whether a name at the top of a document of this layer means something.
func (l Layer) Knows(name string) bool {
	s := &shaper{report: &report{}, layer: l, seen: map[string]field{}}
	b, _ := s.find(table().root, "", field{name: name})
	return b != nil && l.sets(b.first())
}

func (l Layer) find(name string) (s *shaper, b *branch, path string, err error) {
	s = &shaper{report: &report{}, layer: l, seen: map[string]field{}}
	b = table().root
	f := field{at: Place{Layer: l}}
	for part := range strings.SplitSeq(name, ".") {
		f.name = part
		if b, path = s.find(b, path, f); b == nil {
			return nil, nil, "", s.first()
		}
	}
	if !s.allowed(b, path, f) {
		return nil, nil, "", s.first()
	}
	if b.key == nil && b.group.short != "" {
		path = join(path, b.group.short)
		b = b.fields[b.group.short]
	}
	if b.key == nil {
		return nil, nil, "", fmt.Errorf("%s has keys of its own: %s", shownPath(path), strings.Join(b.order, ", "))
	}
	return s, b, path, nil
}

// first returns the first report without its place: the reader knows where they typed it.
func (s *shaper) first() error {
	if len(s.report.found) == 0 {
		return errors.New("it cannot be read")
	}
	return errors.New(strings.TrimSuffix(s.report.found[0].Text, "; it is left out"))
}
