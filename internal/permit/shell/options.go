package shell

import (
	"cmp"
	"slices"
	"strings"
)

// given is an option that a command was given.
type given struct {
	name   string // as the table spells it
	spec   optionSpec
	value  word
	has    bool // it has a value
	at     int  // index of its word
	inside bool // the value is part of the same word

	command []word // for an option that is followed by a command
}

// operand is a word that is not an option.
type operand struct {
	*word
	at int
}

// usage is a command line, read according to the row of its program. Words
// are counted from the one after the program's name.
type usage struct {
	rows     []*row // of the subcommand, then of the program around it if its options also apply here
	words    []word
	options  []given
	operands []operand
	rest     []word // what follows the options, which end at the first other word or at --
	dashes   int    // index of --, or -1
	odd      string // the first option that is not in the table, as written
	oddAt    int    // its index, or len(words)
	unsure   string // a word that may become an option at run time
	done     bool   // the rest belongs to the code or module that was named
}

// readOptions returns a new usage for these words.
func readOptions(rows []*row, words []word, stop bool) usage {
	var u usage
	u.read(rows, words, stop)
	return u
}

// reset empties the usage but keeps its memory.
func (u *usage) reset(rows []*row) {
	*u = usage{rows: rows, dashes: -1, options: u.options[:0], operands: u.operands[:0]}
}

// read reads the words behind the name of a program or subcommand. With stop, options end
// at the first word that is not an option, whatever the row says.
func (u *usage) read(rows []*row, words []word, stop bool) {
	u.reset(rows)
	u.words, u.oddAt = words, len(words)
	r := rows[0]
	stop = stop || r.stops
	for i := 0; i < len(words); {
		x := &words[i]
		head := x.head()
		switch {
		case u.done:
			u.operandsFrom(i)
			return
		case x.known && x.value == "--" && r.single: // find still reads the expression behind it
			i++
		case x.known && x.value == "--":
			u.dashes = i
			i++
			u.operandsFrom(i)
			return
		case !x.known && u.maybeOption(x, head):
			u.unsure = cmp.Or(u.unsure, x.text, "a word of the input")
			u.note("", i)
			if stop {
				u.operandsFrom(i)
				return
			}
			u.operands = append(u.operands, operand{x, i})
			i++
		case r.bundle && i == 0 && head != "" && !u.isOption(head): // in any form: of "cf-v" tar takes c and f
			i = u.bundled(i, head)
		case u.isOption(head):
			i = u.option(i, head)
		default:
			if name, value, ok := strings.Cut(head, "="); ok {
				if spec, found := u.find(name + "="); found {
					u.add(given{name: name + "=", spec: spec, value: x.tail(value), has: true, at: i, inside: true})
				}
			}
			if stop {
				u.operandsFrom(i)
				return
			}
			u.operands = append(u.operands, operand{x, i})
			i++
		}
	}
}

func (u *usage) row() *row { return u.rows[0] }

// couldRun and couldWrite report whether some option of the program runs or writes something.
func (u *usage) couldRun() bool {
	return slices.ContainsFunc(u.rows, func(r *row) bool { return r.runs })
}
func (u *usage) couldWrite() bool {
	return slices.ContainsFunc(u.rows, func(r *row) bool { return r.writes })
}

func (u *usage) operandsFrom(i int) {
	u.rest = u.words[i:]
	u.operands = slices.Grow(u.operands, len(u.rest))
	for ; i < len(u.words); i++ {
		u.operands = append(u.operands, operand{&u.words[i], i})
	}
}

// note records an option that is not in the table.
func (u *usage) note(option string, at int) {
	u.odd = cmp.Or(u.odd, option)
	u.oddAt = min(u.oddAt, at)
}

func (u *usage) add(g given) {
	u.options = append(u.options, g)
	switch g.spec.effect {
	case effectModule:
		u.done = true
	case effectCode:
		u.done = u.done || u.row().words == wordsScript
	}
}

// head returns the text that a word certainly begins with.
func (w *word) head() string {
	if w.known {
		return w.value
	}
	head := ""
	for _, s := range w.spans() {
		if s.Gap {
			break
		}
		head += s.Text
	}
	return head
}

// tail returns the rest of a word; known is the part of it that is certain.
func (w *word) tail(known string) word {
	if w.known {
		return knownWord(known)
	}
	return word{value: known + "…", text: w.text, gaps: oneGap}
}

// maybeOption reports whether an unknown word may begin with a dash, or may be an unknown option.
func (u *usage) maybeOption(x *word, head string) bool {
	switch {
	case head == "":
		return !x.home && !(x.gaps != nil && x.gaps.plain)
	case !u.isOption(head):
		return false
	case strings.HasPrefix(head, "--") || u.row().single:
		return !strings.Contains(head, "=")
	}
	// Letters, of which the last takes the unknown part as its value.
	spec, ok := u.find("-" + head[len(head)-1:])
	return !(ok && spec.arity != noValue) && !slices.ContainsFunc([]byte(head[1:]), func(c byte) bool {
		spec, ok := u.find("-" + string(c))
		return ok && spec.arity != noValue
	})
}

func (u *usage) isOption(head string) bool {
	if strings.HasPrefix(head, "+") || strings.HasPrefix(head, "@") {
		_, ok := u.find(head[:1])
		return ok
	}
	return len(head) > 1 && head[0] == '-' || head == "-" && u.row().dash
}

// find looks up an option.
func (u *usage) find(name string) (optionSpec, bool) {
	for _, r := range u.rows {
		if spec, ok := r.options[name]; ok {
			return spec, true
		}
	}
	return optionSpec{}, false
}

// complete returns the long option that an abbreviation stands for. If
// there are several, it returns the one that matters.
func (u *usage) complete(name string) (full string, ok bool) {
	if len(name) < 3 {
		return "", false
	}
	for _, r := range u.rows {
		i, _ := slices.BinarySearch(r.long, name)
		for ; i < len(r.long) && strings.HasPrefix(r.long[i], name); i++ {
			if full == "" || r.options[r.long[i]].effect != effectPlain && !r.options[full].effect.matters() {
				full = r.long[i]
			}
		}
	}
	return full, full != ""
}

// option reads the option word at i and its value. It returns the index behind them.
func (u *usage) option(i int, head string) int {
	x := &u.words[i]
	switch {
	case head == "-":
		return i + 1
	case head[0] == '+' || head[0] == '@':
		spec, _ := u.find(head[:1])
		u.add(given{name: head[:1], spec: spec, value: x.tail(head[1:]), has: true, at: i, inside: true})
		return i + 1
	case slices.ContainsFunc(u.rows, func(r *row) bool { return r.anydash }):
		// Any number of dashes is accepted: -script-shell is --script-shell.
		bare := strings.TrimLeft(head, "-")
		name, _, _ := strings.Cut(bare, "=")
		if _, long := u.complete("--" + name); long && len(name) > 1 || strings.HasPrefix(head, "--") {
			return u.named(i, "--"+bare)
		}
	case strings.HasPrefix(head, "--") || u.row().single:
		return u.named(i, head)
	}
	if spec, ok := u.find(head); ok && len(head) > 2 {
		return u.valued(i, given{name: head, spec: spec, at: i}, "", false)
	}
	return u.letters(i, head)
}

// named reads --name or --name=value, or -name in single rows.
func (u *usage) named(i int, head string) int {
	r := u.row()
	name, value, has := strings.Cut(head, "=")
	if r.single && strings.HasPrefix(name, "--") {
		name = name[1:]
	}
	spec, ok := u.find(name)
	if !ok && r.single {
		name, value, has, spec, ok = u.prefixed(head, name, value, has)
	}
	if !ok && !r.single && !r.exact {
		var full string
		if full, ok = u.complete(name); ok {
			name = full
			spec, _ = u.find(name)
		}
	}
	if !ok {
		if name != "--help" && name != "--version" {
			u.note(name, i)
		}
		return i + 1
	}
	return u.valued(i, given{name: name, spec: spec, at: i}, value, has)
}

// prefixed finds an option of a single row whose value is attached without =, like -O3.
func (u *usage) prefixed(head, name, value string, has bool) (string, string, bool, optionSpec, bool) {
	const short = 3 // including the dash
	longest := ""
	var found optionSpec
	for _, r := range u.rows {
		for o, spec := range r.options {
			attached := spec.arity == attachedValue || r.joined && spec.arity == takesValue && len(o) <= short
			if attached && len(o) > len(longest) && strings.HasPrefix(head, o) {
				longest, found = o, spec
			}
		}
	}
	if longest != "" {
		return longest, head[len(longest):], true, found, true
	}
	return name, value, has, optionSpec{}, false
}

// valued adds an option whose value is in its own word or in the next one.
func (u *usage) valued(i int, g given, value string, has bool) int {
	switch {
	case g.spec.effect == effectCommand:
		from := i + 1
		for i++; i < len(u.words) && !u.ends(i, from); i++ {
		}
		g.command = u.words[from:i]
	case has:
		g.value, g.has, g.inside = u.words[i].tail(value), true, true
	case g.spec.arity == takesValue && i+1 < len(u.words):
		i++
		g.value, g.has = u.words[i], true
		if x := &u.words[i]; !x.known && x.split {
			u.unsure = cmp.Or(u.unsure, x.text, "a word of the input") // it may become several words, including options
		}
	}
	u.add(g)
	return i + 1
}

// ends reports whether the command behind -exec ends at i: at ";", or at a "+" behind "{}".
func (u *usage) ends(i, from int) bool {
	v := u.words[i].value
	return v == ";" || v == "+" && i > from && u.words[i-1].value == "{}"
}

// letters reads short options that share a word.
func (u *usage) letters(i int, head string) int {
	for j := 1; j < len(head); j++ {
		if j+2 <= len(head) { // zip also has two-letter options such as -lf and -TT
			if spec, ok := u.find("-" + head[j:j+2]); ok {
				return u.valued(i, given{name: "-" + head[j:j+2], spec: spec, at: i}, head[j+2:], head[j+2:] != "")
			}
		}
		name := head[j : j+1]
		spec, ok := u.find("-" + name)
		switch {
		case !ok && u.row().digits && name[0] >= '0' && name[0] <= '9':
		case !ok:
			u.note("-"+name, i)
		case spec.arity == noValue && spec.effect != effectCommand:
			u.add(given{name: letterName(head, j), spec: spec, at: i})
		default:
			value := head[j+1:]
			return u.valued(i, given{name: letterName(head, j), spec: spec, at: i}, value, value != "" || !u.words[i].known || spec.arity == attachedValue)
		}
	}
	return i + 1
}

// letterName returns the name of the letter at j of an option word.
func letterName(head string, j int) string {
	if j == 1 {
		return head[:2] // without copying
	}
	return "-" + head[j:j+1]
}

// bundled reads letters without a dash, as tar accepts them. Their values are the next words.
func (u *usage) bundled(i int, head string) int {
	next := i + 1
	for _, c := range head {
		spec, ok := u.find("-" + string(c))
		g := given{name: "-" + string(c), spec: spec, at: i}
		if !ok {
			u.note(g.name, i)
			continue
		}
		if spec.arity == takesValue && next < len(u.words) {
			g.value, g.has = u.words[next], true
			next++
		}
		u.add(g)
	}
	return next
}

// has reports whether the command certainly has an option with this effect:
// no earlier word could have taken it as its value.
func (u *usage) has(e effect) bool {
	return slices.ContainsFunc(u.options, func(g given) bool {
		off := e == effectQuery && (g.value.value == "none" || g.value.value == "false") // --dry-run=none
		return g.spec.effect == e && g.at <= u.oddAt && !off
	})
}

// given looks up an option by its names.
func (u *usage) given(names ...string) *given {
	for i := range u.options {
		if slices.Contains(names, u.options[i].name) {
			return &u.options[i]
		}
	}
	return nil
}
