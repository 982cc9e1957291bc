package operation

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Set is a list of operations in display order.
type Set struct {
	list   []*Definition
	byName map[string]*Definition
}

// Collect makes a set from the lists in the files of the catalogue.
func Collect(groups ...[]Any) *Set {
	s := &Set{byName: map[string]*Definition{}}
	for _, group := range groups {
		for _, one := range group {
			d := one.Def()
			s.list = append(s.list, d)
			s.byName[d.Name] = d
		}
	}
	return s
}

// All returns the definitions. The slice must not be changed.
func (s *Set) All() []*Definition { return s.list }

// Named finds an operation, or returns nil.
func (s *Set) Named(name string) (*Definition, bool) {
	if s == nil {
		return nil, false
	}
	d, ok := s.byName[name]
	return d, ok
}

// Tool finds an operation with one input and one output by the name of its tool.
func (s *Set) Tool(name string) (*Definition, bool) {
	for _, d := range s.list {
		if d.Shape == Unary && d.IsTool(name) {
			return d, true
		}
	}
	return nil, false
}

// Check returns all mistakes in the definitions of a set. A test runs it, because fields are read late and mistakes
// would otherwise appear late.
func (s *Set) Check() error {
	var wrong []error
	seen := map[string]string{}
	unique := func(d *Definition, what string) {
		if before, ok := seen[what]; ok {
			wrong = append(wrong, fmt.Errorf("%s and %s both have %s", before, d.Name, what))
		}
		seen[what] = d.Name
	}
	for _, d := range s.list {
		unique(d, "the name "+d.Name)
		for _, h := range d.HTTP {
			unique(d, "the route "+h.Route)
			unique(d, "the operationId "+h.ID)
		}
		for _, c := range d.CLI {
			unique(d, "the command line "+c.Words)
		}
		for _, c := range d.Slash {
			unique(d, "the chat command "+c.Words)
			if _, ok := s.byName[c.First]; c.First != "" && !ok {
				wrong = append(wrong, fmt.Errorf("the chat command %q shows %s first, which is no operation", c.Words, c.First))
			}
		}
		for _, name := range []string{d.NameForMCP(), d.Former} {
			if name != "" {
				unique(d, "the tool "+name)
			}
		}
		for _, err := range d.mistakes() {
			wrong = append(wrong, fmt.Errorf("operation %s: %w", d.Name, err))
		}
	}
	return errors.Join(wrong...)
}

// mistakes returns the mistakes in one definition.
func (d *Definition) mistakes() (wrong []error) {
	set, err := d.fields()
	if err != nil {
		return []error{err}
	}
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if noun, verb, ok := strings.Cut(d.Name, "."); !ok || noun == "" || verb == "" {
		add("the name is not noun.verb")
	}
	if d.Help == "" || strings.HasSuffix(d.Help, ".") {
		add("the help is missing or ends with a full stop")
	}
	if d.Scope != "" && !slices.Contains(Scopes(), d.Scope) {
		add("there is no scope %q", d.Scope)
	}
	if d.Effect == Creates && set.key == nil && d.Shape == Unary && !d.Secret {
		add("it creates something and has no field with the tag key")
	}
	files := 0
	for _, f := range set.list {
		if f.File {
			files++
		}
		if f.Doc == "" && !f.File && f.Name != "limit" && len(f.Enum) == 0 && f.Noun == "" {
			add("field %s has no doc", f.Name)
		}
		if kind := f.Type.Kind(); f.MaxLen == nil && (kind == reflect.String || kind == reflect.Slice) && len(f.Enum) == 0 && f.Pattern == "" {
			add("field %s may be of any length", f.Name)
		}
	}
	if (d.Shape == Uploaded) != (files == 1) || files > 1 {
		add("an upload has exactly one field of type File, and nothing else has one")
	}
	return append(wrong, d.misplaced()...)
}

// misplaced returns names of fields in a definition that its input does not have.
func (d *Definition) misplaced() (wrong []error) {
	known := func(where, name string) Field {
		for _, f := range d.Fields() {
			if f.Is(where, name) {
				return f
			}
		}
		wrong = append(wrong, fmt.Errorf("there is no field %s", name))
		return Field{}
	}
	set := func(values map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if f := known(everytime, name); f.Type != nil && !reflect.TypeOf(values[name]).AssignableTo(f.Type) {
				wrong = append(wrong, fmt.Errorf("field %s cannot be set to %v", name, values[name]))
			}
		}
	}
	for _, h := range d.HTTP {
		method, path, ok := strings.Cut(h.Route, " ")
		if !ok || h.ID == "" || !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method) || !strings.HasPrefix(path, "/") {
			wrong = append(wrong, fmt.Errorf("the route %q has no method, no path or no id", h.Route))
		}
		braces(path, func(name string) string { known(OverHTTP, name); return "" })
	}
	for _, c := range d.CLI {
		for _, arg := range c.Arguments() {
			known(InCLI, arg.Field)
		}
		set(c.Set)
	}
	for _, c := range d.Slash {
		if n := len(strings.Fields(c.Words)); n < 1 || n > 3 {
			wrong = append(wrong, fmt.Errorf("the chat command %q has %d words", c.Words, n))
		}
		for name := range strings.FieldsSeq(c.Options + " " + c.Require) {
			known(InSlash, name)
		}
		set(c.Set)
		wrong = append(wrong, d.unknownIn(c.Show, c.Speaks, c.Ask)...)
	}
	wrong = append(wrong, d.unknownIn(d.Label)...)
	columns := d.TableColumns()
	if d.Columns != "" && (len(columns) == 0 || d.Empty == "") {
		wrong = append(wrong, errors.New("the columns cannot be read, or nothing is said of an empty list"))
	}
	for _, c := range columns {
		if items, ok := byJSONName(reflect.New(d.Out).Elem(), "items"); ok {
			if _, ok := byJSONName(reflect.New(items.Type().Elem()).Elem(), c.Field); !ok {
				wrong = append(wrong, fmt.Errorf("the output has no field %s for a column", c.Field))
			}
		}
	}
	return wrong
}

// unknownIn returns names in templates that neither the output (or an item of it) nor the input has.
func (d *Definition) unknownIn(templates ...string) (wrong []error) {
	from := []reflect.Value{reflect.New(d.Out).Elem(), reflect.New(d.In).Elem()}
	if items, ok := byJSONName(from[0], "items"); ok {
		from[0] = reflect.New(items.Type().Elem()).Elem()
	}
	for _, template := range templates {
		braces(template, func(name string) string {
			name, _, _ = strings.Cut(name, ":")
			if !slices.ContainsFunc(from, func(v reflect.Value) bool { _, ok := byJSONName(v, name); return ok }) {
				wrong = append(wrong, fmt.Errorf("a template names %s, which neither input nor output has", name))
			}
			return ""
		})
	}
	return wrong
}

// Argument is a positional argument of a command line.
type Argument struct {
	Field    string // its name on the command line
	Optional bool
	Rest     bool // it takes the rest of the line
}

// Arguments reads Args.
func (c CLI) Arguments() (out []Argument) {
	for word := range strings.FieldsSeq(c.Args) {
		a := Argument{Optional: strings.HasPrefix(word, "[")}
		word = strings.Trim(word, "[]")
		word, a.Rest = strings.CutSuffix(word, "…")
		a.Field = strings.ToLower(word)
		out = append(out, a)
	}
	return out
}
