package shell

import (
	_ "embed" // the table
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed programs.txt
var programsText string

// effect is what an option does, as far as it matters for a decision.
// The names are the sections of programs.txt.
type effect string

const (
	effectPlain   effect = "plain"
	effectWrite   effect = "write"
	effectTarget  effect = "target"
	effectEdit    effect = "edit"
	effectDelete  effect = "delete"
	effectRun     effect = "run"
	effectShell   effect = "shell"
	effectCommand effect = "command"
	effectCode    effect = "code"
	effectFile    effect = "file"
	effectScript  effect = "script"
	effectSetting effect = "setting"
	effectFlags   effect = "flags"
	effectSet     effect = "set"
	effectModule  effect = "module"
	effectOwn     effect = "own"
	effectChdir   effect = "chdir"
	effectQuery   effect = "query"
	effectSend    effect = "send"
	effectData    effect = "data"
	effectGet     effect = "get"
	effectMethod  effect = "method"
)

var effects = []effect{
	effectPlain, effectWrite, effectTarget, effectEdit, effectDelete, effectRun, effectShell, effectCommand, effectCode, effectFile, effectScript,
	effectSetting, effectFlags, effectSet, effectModule, effectOwn, effectChdir, effectQuery, effectSend, effectData, effectGet, effectMethod,
}

// writes reports whether the effect writes or removes files.
func (e effect) writes() bool {
	return e == effectWrite || e == effectTarget || e == effectEdit || e == effectDelete
}

// runs reports whether something else runs as an effect.
func (e effect) runs() bool {
	switch e {
	case effectPlain, effectChdir, effectQuery, effectSend, effectData, effectGet, effectMethod:
		return false
	}
	return !e.writes()
}

// matters reports whether the effect needs a rule that names more than the program.
func (e effect) matters() bool { return e.runs() || e.writes() }

// arity says whether an option takes a value.
type arity byte

const (
	noValue arity = iota
	takesValue
	attachedValue // only after = or in the same word
)

// optionSpec is what the table says about an option.
type optionSpec struct {
	effect effect
	arity  arity
}

// wordsOf says what the non-option words of a command are. The names are in programs.txt.
type wordsOf string

const (
	wordsCommand wordsOf = "command"
	wordsShell   wordsOf = "shell"
	wordsScript  wordsOf = "script"
	wordsTarget  wordsOf = "target"
	wordsOutput  wordsOf = "output"
	wordsFirst   wordsOf = "first"
	wordsWritten wordsOf = "written"
	wordsLogin   wordsOf = "login"
	wordsSed     wordsOf = "sed"
	wordsAwk     wordsOf = "awk"
	wordsSQL     wordsOf = "sql"
	wordsTar     wordsOf = "tar"
)

var wordKinds = []wordsOf{
	wordsCommand, wordsShell, wordsScript, wordsTarget, wordsOutput, wordsFirst, wordsWritten, wordsLogin, wordsSed, wordsAwk, wordsSQL, wordsTar,
}

// row holds what is known about a program or one of its subcommands.
type row struct {
	options  map[string]optionSpec // by name as written, including dashes
	long     []string              // the names with two dashes, sorted, for abbreviations
	runs     bool                  // some option runs something
	writes   bool                  // some option writes or removes files
	words    wordsOf
	skip     int // words before the command
	safe     []string
	unsafe   []string
	runners  []string
	commands []string
	reads    []string
	groups   []string
	changes  []string
	sends    []string

	alone []*row // only this row

	at      int    // line number of its name in the table
	unread  string // its lines in the table, parsed on demand because few rows are ever needed
	reading sync.Once
	wrong   error // the error in those lines

	stops, loose, single, bundle, exact, digits, dash, sets, verbs, everywhere, anydash, raises, opens, input, joined, own, maybe bool
}

// programTable is programs.txt. Its names are read when the table is first
// needed, and each row when its program is first needed.
type programTable struct {
	rows map[string]*row
}

var programs = sync.OnceValue(func() *programTable {
	t, err := readPrograms(programsText)
	if err != nil {
		panic(err) // the table is embedded, and a test parses it
	}
	return t
})

// row returns the row of exactly this name, or nil.
func (t *programTable) row(name string) *row {
	r := t.rows[name]
	if r == nil {
		return nil
	}
	if err := r.read(); err != nil {
		panic(err) // as above
	}
	return r
}

// Prepare loads the tables of programs and variables.
func Prepare() {
	programs()
	variables()
}

// program returns the row of a program, or nil if it is not known.
func (t *programTable) program(name string) *row {
	if r := t.row(name); r != nil {
		return r
	}
	for _, other := range otherNames(name) {
		// A program that only starts another needs no rule of its own, so its name must match exactly.
		if r := t.row(other); r != nil && r.words != wordsCommand && r.words != wordsShell && r.words != wordsLogin {
			return r
		}
	}
	return nil
}

// otherNames returns a program's names without the version, variant or machine:
// python3.12, gcc-12, vim.basic, x86_64-linux-gnu-gcc-12.
func otherNames(name string) [4]string {
	if _, tool, ok := strings.Cut(name, "-linux-gnu-"); ok {
		name = tool
	}
	plain, _, _ := strings.Cut(name, ".")
	return [4]string{name, strings.TrimRight(name, "0123456789.-"), plain, strings.TrimRight(plain, "0123456789-")}
}

// verb returns the row of a subcommand, or nil if it has none.
func (t *programTable) verb(prog, verb string) *row {
	if r := t.row(prog + " " + verb); r != nil {
		return r
	}
	return t.row(prog + " *")
}

// readPrograms reads the names in a table and leaves the lines below each name to row.read.
func readPrograms(text string) (*programTable, error) {
	t := &programTable{rows: map[string]*row{}}
	var current *row
	var wrong []error
	at, begin := 0, 0      // the line number, and the offset at which the current row's lines begin
	offset, names := 0, "" // names of a header that continues on the next line
	for line := range strings.Lines(text) {
		at++
		offset += len(line)
		line = strings.TrimRight(line, "\n")
		var err error
		switch {
		case strings.TrimSpace(line) == "" || line[0] == '#':
		case line[0] != ' ' && strings.HasSuffix(line, ","):
			names += line
		case line[0] != ' ':
			current, err = t.header(names + line)
			names, begin = "", offset
			if current != nil {
				current.at = at
			}
		case current == nil:
			err = fmt.Errorf("a section without a program")
		default:
			current.unread = text[begin:offset]
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", at, err))
		}
	}
	return t, errors.Join(wrong...)
}

// read parses the lines of a row, once.
func (r *row) read() error {
	r.reading.Do(func() {
		var wrong []error
		at := r.at
		for line := range strings.Lines(r.unread) {
			at++
			fields := strings.Fields(line)
			if len(fields) == 0 || line[0] != ' ' {
				continue // a comment
			}
			if err := r.section(fields); err != nil {
				wrong = append(wrong, fmt.Errorf("line %d: %w", at, err))
			}
		}
		slices.Sort(r.long)
		r.wrong = errors.Join(wrong...)
	})
	return r.wrong
}

func (t *programTable) header(line string) (*row, error) {
	names, traits, _ := strings.Cut(line, ":")
	r := &row{options: map[string]optionSpec{}}
	r.alone = []*row{r}
	for trait := range strings.FieldsSeq(traits) {
		if on := r.trait(trait); on != nil {
			*on = true
		} else {
			return nil, fmt.Errorf("unknown trait %q", trait)
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if _, twice := t.rows[name]; twice || name == "" {
			return nil, fmt.Errorf("%q appears here twice", name)
		}
		t.rows[name] = r
	}
	return r, nil
}

func (r *row) trait(name string) *bool {
	switch name {
	case "stops":
		return &r.stops
	case "loose":
		return &r.loose
	case "single":
		return &r.single
	case "bundle":
		return &r.bundle
	case "exact":
		return &r.exact
	case "digits":
		return &r.digits
	case "dash":
		return &r.dash
	case "sets":
		return &r.sets
	case "verbs":
		return &r.verbs
	case "everywhere":
		return &r.everywhere
	case "anydash":
		return &r.anydash
	case "raises":
		return &r.raises
	case "opens":
		return &r.opens
	case "input":
		return &r.input
	case "joined":
		return &r.joined
	case "own":
		return &r.own
	case "maybe":
		return &r.maybe
	}
	return nil
}

// section parses one line of a row.
func (r *row) section(fields []string) error {
	name, words := fields[0], fields[1:]
	if slices.Contains(effects, effect(name)) {
		var wrong []error
		for _, w := range words {
			wrong = append(wrong, r.option(effect(name), w))
		}
		return errors.Join(wrong...)
	}
	switch name {
	case "words":
		return r.operands(words)
	case "safe":
		r.safe = append(r.safe, words...)
	case "unsafe":
		r.unsafe = append(r.unsafe, words...)
	case "runners":
		r.runners = append(r.runners, words...)
	case "commands":
		r.commands = append(r.commands, words...)
	case "reads":
		r.reads = append(r.reads, words...)
	case "groups":
		r.groups = append(r.groups, words...)
	case "changes":
		r.changes = append(r.changes, words...)
	case "sends":
		r.sends = append(r.sends, words...)
	default:
		return fmt.Errorf("unknown section %q", name)
	}
	return nil
}

func (r *row) operands(words []string) error {
	if len(words) == 0 || !slices.Contains(wordKinds, wordsOf(words[0])) {
		return fmt.Errorf("unknown words %q", words)
	}
	r.words = wordsOf(words[0])
	if len(words) > 1 {
		n, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		r.skip = n
	}
	return nil
}

// option parses "-abc", "-ab=", "-a?", "--name=", or, in single rows, "-name".
func (r *row) option(e effect, text string) error {
	spec, name := optionSpec{effect: e}, text
	switch text[len(text)-1] {
	case '=':
		spec.arity, name = takesValue, text[:len(text)-1]
	case '?':
		spec.arity, name = attachedValue, text[:len(text)-1]
	}
	names := []string{name}
	switch {
	case name == "":
		return fmt.Errorf("an option without a name: %q", text)
	case !strings.ContainsAny(name[:1], "-+@"): // a word with this prefix: of=
		names[0] = name + "="
	case strings.HasPrefix(name, "--"):
		r.long = append(r.long, name)
	case strings.HasPrefix(name, "-("):
		names[0] = "-" + strings.Trim(name, "-()")
	case name[0] == '-' && !r.single:
		names = names[:0]
		for _, c := range name[1:] {
			names = append(names, "-"+string(c))
		}
	}
	var wrong []error
	for _, n := range names {
		if old, ok := r.options[n]; ok && old != spec {
			wrong = append(wrong, fmt.Errorf("%s is both %v and %v", n, old, spec))
		}
		r.options[n] = spec
	}
	r.runs, r.writes = r.runs || e.runs(), r.writes || e.writes()
	return errors.Join(wrong...)
}
