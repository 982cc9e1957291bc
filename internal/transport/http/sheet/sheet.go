// Package sheet fills HTML templates. It reads the language of html/template, with the
// standard library's own parser, and promises what the pages need of that package:
// whatever is put in is text, in the page and in quoted attributes, unless it is of
// the type HTML; and what could be anything else there is refused when it is parsed.
//
// It exists because html/template calls methods by their names, so that the linker must keep
// every method of every type of the program: that made every chorus, also one that never
// shows a page, half as large again (docs/decisions/0034). Here templates reach fields, map
// entries and functions, and no methods.
package sheet

import (
	"fmt"
	"html"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"strings"
	"text/template/parse"
)

// HTML is markup that is put in as it is. Whoever makes one answers for it.
type HTML string

// FuncMap are functions that templates can call by name.
type FuncMap map[string]any

// Set is templates that know each other. Once parsed it may be used by many at once.
type Set struct {
	funcs FuncMap
	trees map[string]*parse.Tree
}

// New makes an empty set whose templates can call these functions beside the built-in ones.
func New(funcs FuncMap) *Set {
	s := &Set{funcs: builtins(), trees: map[string]*parse.Tree{}}
	maps.Copy(s.funcs, funcs)
	return s
}

// Clone is a set with the same templates, to which others can be added.
func (s *Set) Clone() *Set { return &Set{funcs: s.funcs, trees: maps.Clone(s.trees)} }

// ParseFS adds the templates of files, each under the file's name, and those they define.
func (s *Set) ParseFS(files fs.FS, names ...string) error {
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := s.Parse(path.Base(name), string(text)); err != nil {
			return err
		}
	}
	return nil
}

// Parse adds a template and those it defines. What is put in where text is not safe is
// an error that names the place.
func (s *Set) Parse(name, text string) error {
	trees, err := parse.Parse(name, text, "", "", s.funcs)
	if err != nil {
		return err
	}
	for name, tree := range trees {
		if tree.Root == nil {
			continue
		}
		if err := check(tree); err != nil {
			return err
		}
		if old := s.trees[name]; old != nil && parse.IsEmptyTree(tree.Root) {
			continue // a file that only defines others
		}
		s.trees[name] = tree
	}
	return nil
}

// Execute fills one template.
func (s *Set) Execute(w io.Writer, name string, data any) (err error) {
	tree := s.trees[name]
	if tree == nil {
		return fmt.Errorf("there is no template %q", name)
	}
	var out strings.Builder
	f := &filling{set: s, out: &out}
	defer func() {
		if r := recover(); r != nil {
			failed, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("template %s: %w", name, failed.err)
		}
	}()
	f.template(tree, reflect.ValueOf(data))
	_, err = io.WriteString(w, out.String())
	return err
}

// failure is an error on its way out of a template.
type failure struct{ err error }

func fail(node parse.Node, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if node != nil {
		err = fmt.Errorf("%s: %w", short(node.String()), err)
	}
	panic(failure{err})
}

func short(text string) string {
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

// shown is a value as it stands in a page.
func shown(v reflect.Value) string {
	v = plain(v)
	switch {
	case !v.IsValid():
		return ""
	case v.Type() == reflect.TypeFor[HTML]():
		return v.String()
	case v.Kind() == reflect.String:
		return html.EscapeString(v.String())
	}
	return html.EscapeString(fmt.Sprint(v.Interface()))
}
