package shell

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The table has no mistakes.
func TestTable(t *testing.T) {
	t.Parallel()
	table, err := readPrograms(programsText)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.rows) < 300 {
		t.Errorf("only %d rows", len(table.rows))
	}
	for name, r := range table.rows {
		if err := r.read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A mistake in a row is told with its line, however often it is asked for.
func TestTableMistakes(t *testing.T) {
	t.Parallel()
	table, err := readPrograms("# programs\none,\ntwo: loose\n  plain -a\n# between\n  plian -b\nthree\n  words command\n")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := table.rows["one"].read(); err == nil || err.Error() != `line 6: unknown section "plian"` {
			t.Errorf("%v", err)
		}
	}
	if r := table.row("three"); r == nil || r.words != wordsCommand {
		t.Errorf("%+v", r)
	}
	if _, err := readPrograms("one\ntwo, one\n"); err == nil {
		t.Error("a name that stands twice is taken")
	}
	if _, err := readPrograms("  plain -a\n"); err == nil {
		t.Error("a row without a name is taken")
	}
}

// does lists what a command is found to do, as in testdata/options.txt.
func does(command string) string {
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	var above [20]string // the programs around a part
	Parse(command, nil).All(func(p *Part, depth int) {
		above[depth], _, _ = strings.Cut(p.Text, " ")
		if p.Kind == KindGuess && depth > 0 && (above[depth] == above[depth-1] || above[depth] == ">") {
			return // what variables may hold
		}
		stricter, _ := p.Names()
		if slices.ContainsFunc(stricter, func(s string) bool { return strings.HasPrefix(s, "tool:remote:") }) {
			add("remote")
		}
		switch {
		case p.Opaque && p.Kind != KindGuess:
			add("asked")
		case p.RunsFile() != "" && p.Kind != KindGuess:
			add("file")
		case p.Kind == KindWrite:
			add("write " + strings.TrimPrefix(p.Action, "tool:write:"))
		case depth > 0 && strings.HasPrefix(p.Text, "rm "):
			add(p.Text)
		case depth > 0 && (p.Kind == KindCommand || p.Kind == KindGuess):
			add("run " + p.Text)
		}
	})
	switch {
	case len(out) == 0:
		return "plain"
	case slices.Contains(out, "asked"):
		return "asked" // the rest does not matter then
	}
	return strings.Join(out, ",")
}

// Programs are read as the table says, however their options are spelled.
func TestOptions(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/options.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		n++
		want, command, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if got := does(command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if n < 150 {
		t.Errorf("only %d commands", n)
	}
}

// Every option that matters is found under each of its spellings: with its value attached, in the next word, as the
// beginning of its name, and among other letters.
func TestEverySpelling(t *testing.T) {
	t.Parallel()
	tried := 0
	for name := range programs().rows {
		r := programs().row(name)
		if strings.Contains(name, "*") || r.opens || r.words == wordsCommand && strings.Contains(name, " ") {
			continue
		}
		for option, spec := range r.options {
			if !spec.effect.runs() || spec.effect == effectFile || spec.effect == effectScript {
				continue
			}
			for _, words := range spellings(r, option, spec) {
				tried++
				command := append(strings.Fields(name), words...)
				if does(Join(command)) == "plain" {
					t.Errorf("%s is not noticed", Join(command))
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d spellings", tried)
	}
}

// spellings are ways to write an option with the value ./x.
func spellings(r *row, option string, spec optionSpec) (out [][]string) {
	long := strings.HasPrefix(option, "--")
	switch {
	case spec.effect == effectCommand:
		return [][]string{{option, "./x", ";"}}
	case option == "+" || strings.HasSuffix(option, "="):
		return [][]string{{option + "./x"}}
	case spec.arity == noValue:
		return [][]string{{option}}
	}
	value := "./x"
	if spec.effect == effectSet {
		value = "PATH=./x"
	}
	if spec.arity == takesValue {
		out = append(out, []string{option, value})
	}
	switch {
	case long || r.single && spec.arity == takesValue:
		out = append(out, []string{option + "=" + value})
	default:
		out = append(out, []string{option + value})
	}
	if long && !r.exact {
		// The shortest beginning that no other option has.
		for n := 3; n < len(option); n++ {
			if !slices.ContainsFunc(r.long, func(o string) bool { return o != option && strings.HasPrefix(o, option[:n]) }) {
				out = append(out, []string{option[:n] + "=" + value})
				break
			}
		}
	}
	if len(option) == 2 && !r.single {
		for other, s := range r.options {
			if s.arity == noValue && s.effect == effectPlain && len(other) == 2 {
				out = append(out, []string{other + option[1:] + value})
				break
			}
		}
	}
	return out
}

// Variables that decide what runs are asked for with the values that the table does not call harmless, and each row has a command
// here that tries it.
func TestVariables(t *testing.T) {
	t.Parallel()
	table, err := readVariables(variablesText)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/variables.txt")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[*variable]bool{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		want, command, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if got := does(command); got != want && !(want == "plain" && strings.HasPrefix(got, "run ")) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(command, "env "), "=")
		tried[table.find(name)] = true
	}
	for name, v := range table.names {
		if !tried[v] {
			t.Errorf("nothing tries %s", name)
		}
	}
	for _, f := range slices.Concat(table.prefixes, table.suffixes) {
		if !tried[f.variable] {
			t.Errorf("nothing tries the family %s", f.text)
		}
	}
}
