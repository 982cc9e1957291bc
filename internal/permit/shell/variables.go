package shell

import (
	_ "embed" // the table
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

//go:embed variables.txt
var variablesText string

// variable is a row of variables.txt.
type variable struct {
	values string   // the kind of harmless values, as in the table
	list   []string // the values, for kinds that list them
	why    string   // what the variable does; follows its name in a sentence
}

// variableTable is variables.txt, read on first use.
type variableTable struct {
	names    map[string]*variable
	prefixes []family
	suffixes []family
	own      []string // names of variables that decide where an interpreter finds code
}

// family is a row for all names with this prefix or suffix.
type family struct {
	text string
	*variable
}

var variables = sync.OnceValue(func() *variableTable {
	t, err := readVariables(variablesText)
	if err != nil {
		panic(err) // the table is embedded, and a test parses it
	}
	return t
})

func readVariables(text string) (*variableTable, error) {
	t := &variableTable{names: map[string]*variable{}}
	var wrong []error
	at := 0
	for line := range strings.Lines(text) {
		at++
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		if err := t.add(fields); err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", at, err))
		}
	}
	return t, errors.Join(wrong...)
}

func (t *variableTable) add(fields []string) error {
	if len(fields) < 3 {
		return fmt.Errorf("expected a name, the values and the reason: %q", fields)
	}
	name, v := fields[0], &variable{values: fields[1], why: strings.Join(fields[2:], " ")}
	if kind, list, ok := strings.Cut(v.values, "="); ok {
		v.values, v.list = kind+"=", strings.Split(list, ",")
	}
	switch v.values {
	case "-", "any", "=", "flags=", "cflags", "compiler", "locale", "own":
	default:
		return fmt.Errorf("unknown values %q", v.values)
	}
	if prefix, ok := strings.CutSuffix(name, "*"); ok {
		t.prefixes = append(t.prefixes, family{prefix, v})
		return nil
	}
	if suffix, ok := strings.CutPrefix(name, "*"); ok {
		t.suffixes = append(t.suffixes, family{suffix, v})
		return nil
	}
	if t.names[name] != nil {
		return fmt.Errorf("%q appears here twice", name)
	}
	t.names[name] = v
	if v.values == "own" {
		t.own = append(t.own, name)
	}
	return nil
}

// find returns the row of a variable, or nil.
func (t *variableTable) find(name string) *variable {
	if v := t.names[name]; v != nil {
		return v
	}
	// npm ignores the case of its variables.
	if len(name) > len("npm_config_") && strings.EqualFold(name[:len("npm_config_")], "npm_config_") {
		name = strings.ToLower(name)
		if v := t.names[name]; v != nil {
			return v
		}
	}
	for _, f := range t.suffixes {
		if strings.HasSuffix(name, f.text) {
			return f.variable
		}
	}
	for _, f := range t.prefixes {
		if strings.HasPrefix(name, f.text) {
			return f.variable
		}
	}
	return nil
}

// harmless reports whether a value needs no approval. For folders of the
// workspace, that also depends on the command; see loadsOwn.
func (v *variable) harmless(value string) bool {
	switch v.values {
	case "any":
		return true
	case "=":
		return slices.Contains(v.list, value)
	case "flags=":
		for f := range strings.FieldsSeq(value) {
			flag, _, _ := strings.Cut(strings.TrimLeft(f, "-"), "=")
			if !slices.Contains(v.list, flag) {
				return false
			}
		}
		return true
	case "cflags":
		return compilesOnly(value)
	case "compiler":
		return value == "" || slices.Contains(compilers, strings.TrimRight(value, "-0123456789."))
	case "locale":
		return isPlainLocale(value)
	case "own":
		return ownFolders(value)
	}
	return false
}

// isPlainLocale reports whether no byte of a multi-byte character can
// be mistaken for another character in a locale.
func isPlainLocale(value string) bool {
	_, charset, _ := strings.Cut(value, ".")
	return value == "" || value == "C" || value == "POSIX" || strings.EqualFold(charset, "UTF-8") || strings.EqualFold(charset, "utf8")
}

// changesPrograms returns why setting a variable makes it unknown what runs, or "".
// loadsOwn covers variables for which that depends on the command.
func changesPrograms(name, value string, known bool) string {
	v := variables().find(name)
	if v == nil || v.values == "any" || known && v.harmless(value) {
		return ""
	}
	return name + " " + v.why
}

// loadsOwn returns why a variable makes an interpreter load code from a folder of the
// workspace, or "". A command that runs such code anyway does nothing unexpected with it. For
// any other command it matters as if it were a different program.
func loadsOwn(name, value string) string {
	if v := variables().find(name); v != nil && v.values == "own" && value != "" {
		return name + " " + v.why + ", and a rule for this command does not cover that code"
	}
	return ""
}

// noteLoads finds variables that a text sets for all that follows and that make
// interpreters load code from the workspace's folders.
func (w *walker) noteLoads(command string, stmts []*syntax.Stmt) {
	if !slices.ContainsFunc(variables().own, func(name string) bool { return strings.Contains(command, name) }) {
		return
	}
	note := func(a *syntax.Assign) {
		if a.Name != nil && a.Value != nil {
			w.load(a.Name.Value, w.readOne(a.Value).value)
		}
	}
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CallExpr:
				if len(n.Args) == 0 {
					for _, a := range n.Assigns {
						note(a)
					}
				}
			case *syntax.DeclClause:
				for _, a := range n.Args {
					note(a)
				}
			}
			return true
		})
	}
}

// load records that a variable is set for what is walked next.
func (w *walker) load(name, value string) {
	if why := loadsOwn(name, value); why != "" {
		w.loads = append(slices.Clip(w.loads), why)
	}
}

// loading handles a command under variables that make interpreters load code from the workspace's folders.
func (w *walker) loading(p *Part, prog string) {
	if len(w.loads) == 0 || p.Kind == KindPlain || p.Kind == KindWrapper || p.file().at > 0 {
		return
	}
	if r := programs().program(prog); r != nil && (r.own || r.words == wordsCommand || r.startsNothing()) {
		return // what it starts is judged separately, or is code of the workspace
	}
	p.opaque(w.loads[0])
}

// startsNothing reports whether a row says only that the program starts nothing, whatever its words are.
func (r *row) startsNothing() bool {
	return r.loose && len(r.options) == 0 && r.words == "" && !r.verbs && !r.opens && !r.input && len(r.sends) == 0 && len(r.reads) == 0
}
