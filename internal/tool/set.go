package tool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"chorus/internal/suggest"
)

// Set holds the tools of one agent. It is immutable, so it may be shared. Its Specs always have the
// same order and the same bytes, because they are at the beginning of every prompt.
type Set struct {
	entries  []*entry // sorted by name
	unlisted []*entry // sorted by name; found like the others but not listed
	names    map[string]found
	folded   map[string]found // lower case; the first in order of names wins
}

type entry struct {
	tool Tool
	spec Spec
	chk  *checker
}

type found struct {
	*entry
	convert func([]byte) ([]byte, error)
}

// NewSet builds a set. It is an error if two tools have the same name, or if an alias is also another
// tool's name or alias, because the order would then decide which tool answers.
func NewSet(tools ...Tool) (*Set, error) {
	entries := make([]*entry, 0, len(tools))
	for _, t := range tools {
		e, err := newEntry(t)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return index(entries, nil)
}

func newEntry(t Tool) (*entry, error) {
	e := &entry{tool: t, spec: t.Spec()}
	if e.spec.Name == "" {
		return nil, fmt.Errorf("a tool of type %T has no name", t)
	}
	if own, ok := t.(interface{ checker() (*checker, error) }); ok {
		chk, err := own.checker()
		e.chk = chk
		return e, err
	}
	chk, err := externalChecker(e.spec.Schema)
	if err != nil {
		return nil, fmt.Errorf("schema of tool %s: %w", e.spec.Name, err)
	}
	e.chk = chk
	return e, nil
}

func index(entries, unlisted []*entry) (*Set, error) {
	s := &Set{entries: entries, unlisted: unlisted, names: map[string]found{}, folded: map[string]found{}}
	byName := func(a, b *entry) int { return strings.Compare(a.spec.Name, b.spec.Name) }
	slices.SortFunc(s.entries, byName)
	slices.SortFunc(s.unlisted, byName)
	all := slices.Concat(s.entries, s.unlisted)
	for _, e := range all {
		if err := s.add(e.spec.Name, found{entry: e}); err != nil {
			return nil, err
		}
	}
	for _, e := range all {
		if a, ok := e.tool.(Aliaser); ok {
			for _, alias := range a.Aliases() {
				if err := s.add(alias.Name, found{entry: e, convert: alias.Convert}); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		if low := strings.ToLower(name); s.folded[low].entry == nil {
			s.folded[low] = s.names[name]
		}
	}
	return s, nil
}

func (s *Set) add(name string, f found) error {
	if there, ok := s.names[name]; ok {
		return fmt.Errorf("two tools answer to the name %s: %s and %s", name, there.spec.Name, f.spec.Name)
	}
	s.names[name] = f
	return nil
}

// Resolve finds the tool that a model named, by its own name, by an alias or in another case. It
// returns the arguments in our form: an object, with harmless slips corrected. A call of a
// Forwarder becomes the call that it forwards. What is judged, shown and run must be the returned
// tool and arguments. The error is an answer for the model.
func (s *Set) Resolve(name string, args []byte) (Tool, []byte, error) {
	t, args, err := s.resolve(name, args)
	if err != nil {
		return nil, nil, err
	}
	forwarder, ok := t.(Forwarder)
	if !ok {
		return t, args, nil
	}
	inner, args, err := forwarder.Forward(args)
	if err != nil {
		return nil, nil, Mistake(err.Error())
	}
	t, args, err = s.resolve(inner, args)
	if err != nil {
		return nil, nil, err
	}
	if _, again := t.(Forwarder); again {
		return nil, nil, Mistake(name + " cannot call " + inner + ": name the tool itself.")
	}
	return t, args, nil
}

func (s *Set) resolve(name string, args []byte) (Tool, []byte, error) {
	f, ok := s.find(name)
	if !ok {
		return nil, nil, Mistake(s.unknown(name))
	}
	if f.convert != nil {
		plain, _, err := object(name, args)
		if err == nil {
			plain, err = f.convert(plain)
		}
		if err != nil {
			return nil, nil, Mistake("Invalid arguments for " + name + ": " + err.Error())
		}
		args = plain
	}
	corrected, err := f.chk.correct(f.spec.Name, args)
	if err != nil {
		return nil, nil, err
	}
	return f.tool, corrected, nil
}

func (s *Set) find(name string) (found, bool) {
	if f, ok := s.names[name]; ok {
		return f, true
	}
	f, ok := s.folded[strings.ToLower(strings.TrimSpace(name))]
	return f, ok
}

// Validate checks arguments against the tool's schema. The error is an
// answer for the model that lists each parameter.
func (s *Set) Validate(t Tool, args []byte) error {
	name := t.Spec().Name
	f, ok := s.names[name]
	if !ok {
		return Mistake(s.unknown(name))
	}
	return f.chk.check(name, args)
}

// Has reports whether the set contains the tool, listed or not.
func (s *Set) Has(t Tool) bool {
	_, ok := s.names[t.Spec().Name]
	return ok
}

// Named finds a tool by its name or by another name that it answers to.
func (s *Set) Named(name string) (Tool, bool) {
	f, ok := s.names[name]
	if !ok {
		return nil, false
	}
	return f.entry.tool, true
}

// Label says in a few words what a call would do, for people.
func (s *Set) Label(name string, args []byte) string {
	t, args, err := s.Resolve(name, args)
	if err != nil {
		return name
	}
	if l, ok := t.(Labeler); ok {
		if label := l.Label(args); label != "" {
			return label
		}
	}
	return t.Spec().Name
}

// Specs lists the specs of the tools, sorted by name.
func (s *Set) Specs() []Spec {
	specs := make([]Spec, len(s.entries))
	for i, e := range s.entries {
		specs[i] = e.spec
	}
	return specs
}

// Tools lists the tools, sorted by name.
func (s *Set) Tools() []Tool {
	tools := make([]Tool, len(s.entries))
	for i, e := range s.entries {
		tools[i] = e.tool
	}
	return tools
}

// Aliases maps every other name to the tool's own.
func (s *Set) Aliases() map[string]string {
	out := map[string]string{}
	for name, f := range s.names {
		if name != f.spec.Name {
			out[name] = f.spec.Name
		}
	}
	return out
}

// Unlisted lists the tools that are found but not listed, sorted by name.
func (s *Set) Unlisted() []Spec {
	specs := make([]Spec, len(s.unlisted))
	for i, e := range s.unlisted {
		specs[i] = e.spec
	}
	return specs
}

// ListOnly returns the set with only those tools listed that list accepts, and
// the extra ones. The others can still be found by name.
func (s *Set) ListOnly(list func(Spec) bool, extra ...Tool) (*Set, error) {
	var listed, unlisted []*entry
	for _, e := range slices.Concat(s.entries, s.unlisted) {
		if list(e.spec) {
			listed = append(listed, e)
		} else {
			unlisted = append(unlisted, e)
		}
	}
	for _, d := range extra {
		e, err := newEntry(d)
		if err != nil {
			return nil, err
		}
		listed = append(listed, e)
	}
	return index(listed, unlisted)
}

// Filter returns the set without the tools that keep rejects.
func (s *Set) Filter(keep func(Spec) bool) *Set {
	drop := func(e *entry) bool { return !keep(e.spec) }
	out, err := index(slices.DeleteFunc(slices.Clone(s.entries), drop), slices.DeleteFunc(slices.Clone(s.unlisted), drop))
	if err != nil {
		// A subset of names that do not clash cannot clash.
		panic(err)
	}
	return out
}

// mostMeant is how many names an answer suggests: among hundreds of tools a short word is part of many names.
const mostMeant = 6

// unknown is the answer to an unknown name.
func (s *Set) unknown(name string) string {
	text := "Unknown tool: " + name
	var meant, all []string
	for _, e := range slices.Concat(s.entries, s.unlisted) {
		own := e.spec.Name
		a, b := squash(name), squash(own)
		if a != "" && (strings.Contains(a, b) || strings.Contains(b, a) || suggest.Distance(a, b) <= 2) {
			meant = append(meant, own)
		}
	}
	for _, e := range s.entries {
		all = append(all, e.spec.Name)
	}
	switch {
	case len(meant) > mostMeant:
		text += ". Did you mean " + strings.Join(meant[:mostMeant], " or ") + " or another?"
	case len(meant) > 0:
		text += ". Did you mean " + strings.Join(meant, " or ") + "?"
	case len(all) > 0:
		text += ". There are: " + strings.Join(all, ", ")
	}
	return text
}
