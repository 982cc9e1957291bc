package shell

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"chorus/internal/permit/action"
)

// call walks a simple command.
func (w *walker) call(c *syntax.CallExpr, redirs []*syntax.Redirect) {
	offset := int(c.Pos().Offset())
	children, opaque := w.expanded(c)
	if len(c.Args) == 0 {
		text := w.source(c)
		w.emit(&Part{
			Argv: []string{text}, Text: text, Kind: KindPlain, Opaque: opaque != "", Why: opaque,
			Children: children, offset: offset, words: []word{{value: text, text: text}}, cwd: w.cwd,
		})
		return
	}
	words := make([]word, 0, len(c.Args))
	for _, a := range c.Args {
		words = w.read(words, a)
	}
	p := Part{Kind: KindCommand, Children: children, offset: offset}
	if opaque != "" {
		p.Opaque, p.Why = true, opaque
	}
	if len(c.Assigns) > 0 {
		p.addExtra().deny = append(p.addExtra().deny, action.Join("bash", w.source(c)))
	}
	loads := w.loads
	for _, a := range c.Assigns {
		if a.Value != nil {
			w.load(a.Name.Value, w.readOne(a.Value).value)
		}
	}
	w.run(p, words, redirs)
	w.loads = loads
}

// expanded returns what runs while the words of a command are expanded, and why its
// assignments make it unknown what runs afterwards, or "".
func (w *walker) expanded(c *syntax.CallExpr) (children []Part, opaque string) {
	saved := w.parts
	w.parts = nil
	for _, a := range c.Assigns {
		if a.Value != nil {
			w.substitutions(a.Value)
		}
		if a.Array != nil {
			w.substitutions(a.Array)
		}
		if a.Index != nil {
			w.substitutions(a.Index)
		}
		if why := w.assigned(a); why != "" {
			opaque = why
		}
	}
	for _, a := range c.Args {
		w.substitutions(a)
	}
	children, w.parts = w.parts, saved
	return children, opaque
}

// run emits the part for a command with these words, and what it starts.
func (w *walker) run(p Part, words []word, redirs []*syntax.Redirect) {
	p.words, p.cwd = words, w.cwd
	p.Argv = argv(p.Argv, words)
	if p.Action == "" {
		w.buf = appendAction(w.buf[:0], words)
		p.Action = string(w.buf)
	}
	p.Text = p.Action[len(action.Bash):]
	prog := program(words)
	if prog == "" {
		p.opaque("the program is not known before it runs")
	} else {
		if prog != words[0].value {
			p.addExtra().deny = append(p.addExtra().deny, action.Join("bash", strings.Replace(p.Text, words[0].text, prog, 1)))
		}
		w.knownProgram(&p, prog, words, redirs)
		if startedByPath(words) {
			p.runsFile(words, 0, unreadFile)
		}
		w.loading(&p, prog)
	}
	w.guesses(&p, words)
	w.emit(&p)
}

// guesses adds what the part would be if variables hold what the script assigned to them.
func (w *walker) guesses(p *Part, words []word) {
	some := false
	for i := range words {
		x := &words[i]
		some = some || !x.known && !x.glob && len(x.values()) > 0
	}
	if !some {
		return
	}
	if w.unwrap >= maxUnwrap || *w.count > maxParts {
		return
	}
	most := 0
	for i := range words {
		if !words[i].known {
			most = max(most, len(words[i].possibleValues()))
		}
	}
	saved, use := w.parts, w.scratch
	w.parts, w.scratch = use.parts[:0], scratch{} // nested guesses use their own buffers
	w.unwrap++
	for i := range most {
		use.words = fillGuess(use.words[:0], words, i)
		action, before := w.guessedBefore(use.words)
		if before {
			continue
		}
		at := len(w.parts)
		w.run(Part{Kind: KindCommand, Action: action, Argv: use.argv[:0]}, use.words, nil)
		made := w.parts[at:]
		markGuess(made)
		if len(made) == 1 && made[0].Children == nil && w.drop != nil && w.drop(&made[0]) {
			use.argv, w.parts = made[0].Argv, w.parts[:at]
		} else {
			use.words, use.argv = nil, nil // the part owns them now
		}
	}
	w.unwrap--
	got := w.parts
	w.parts = saved
	if use.parts = got; len(got) > 0 {
		p.adopt(got)
		use.parts = nil
	}
	w.scratch = use
}

// scratch is a buffer for guesses, reused after each dropped guess.
type scratch struct {
	parts []Part
	words []word
	argv  []string
}

// guessedBefore reports whether the same guess was already made under the same conditions. Once is enough,
// because the strictest part decides. Without this check, long scripts with a few variables would be read
// many times over. For a new guess it returns the action, if it had to be built.
func (w *walker) guessedBefore(words []word) (action string, before bool) {
	if len(w.funcs) > 0 || w.stdin != nil && startsOthers(program(words)) {
		return "", false
	}
	for i := range words {
		if !words[i].known {
			return "", false
		}
	}
	w.buf = appendAction(w.buf[:0], words)
	end := len(w.buf)
	if bytes.IndexByte(w.buf, 0) >= 0 {
		return "", false // a shell cannot pass such a word, and it could collide with another key
	}
	w.buf = append(w.buf, 0)
	if w.piped {
		w.buf = append(w.buf, '|')
	}
	if w.cwd.unknown {
		w.buf = append(w.buf, '?')
	}
	for _, dir := range w.cwd.places() {
		w.buf = append(append(w.buf, 0), dir...)
	}
	if _, before = w.guessed[string(w.buf)]; before {
		return "", true
	}
	if w.guessed == nil {
		w.guessed = map[string]struct{}{}
	}
	key := string(w.buf)
	w.guessed[key] = struct{}{}
	return key[:end], false
}

// startsOthers reports whether a child of the program may read the pipe as words or as a script.
func startsOthers(prog string) bool {
	if prog == "" || isShell(prog) {
		return true
	}
	r := programs().program(prog)
	return r != nil && (r.verbs || r.words == wordsCommand || r.words == wordsShell || r.words == wordsScript || prog == "find" || prog == "kubectl" || prog == "oc")
}

// fillGuess appends the words with the i-th possible value for each unknown one.
func fillGuess(out []word, words []word, i int) []word {
	for k := range words {
		x := &words[k]
		if x.known {
			out = append(out, *x)
			continue
		}
		v := x.possibleValues()
		switch {
		case len(v) == 0:
			out = append(out, *x)
		case x.split:
			for f := range strings.FieldsSeq(v[min(i, len(v)-1)]) {
				out = append(out, homeWord(f))
			}
		default:
			out = append(out, homeWord(v[min(i, len(v)-1)]))
		}
	}
	return out
}

// homeWord returns a word for a value in which a leading tilde means a home directory.
func homeWord(v string) word {
	out := knownWord(v)
	if strings.HasPrefix(v, "~") || strings.HasPrefix(v, homeMark) {
		out.home, out.text = true, v
	}
	return out
}

// argv appends the arguments that the program gets, as far as the text shows them.
func argv(out []string, words []word) []string {
	out = slices.Grow(out, len(words))
	for i := range words {
		if !words[i].unseen {
			out = append(out, words[i].value)
		}
	}
	return out
}

func text(words []word) string {
	n := 0
	for i := range words {
		n += len(words[i].text) + 1
	}
	var b strings.Builder
	b.Grow(n)
	for i := range words {
		if words[i].unseen {
			continue
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[i].text)
	}
	return b.String()
}

// appendAction appends the action string of the words.
func appendAction(to []byte, words []word) []byte {
	to = append(to, action.Bash...)
	for i := range words {
		if words[i].unseen {
			continue
		}
		if i > 0 {
			to = append(to, ' ')
		}
		to = append(to, words[i].text...)
	}
	return to
}

// program returns the name of the program that the words start,
// without its directory, or "" if it is not known.
func program(words []word) string {
	if len(words) == 0 || !words[0].known || words[0].home || words[0].value == "" {
		return ""
	}
	v := words[0].value
	if !strings.Contains(v, "/") {
		return v
	}
	return path.Base(v)
}

// nested adds the parts of a script that a program gets as text.
func (w *walker) nested(p *Part, code string) {
	if w.unwrap >= maxUnwrap || *w.count > maxParts {
		p.opaque("nested too deeply")
		return
	}
	sub := &walker{unwrap: w.unwrap + 1, count: w.count, arith: w.arith, readings: w.readings, cwd: w.cwd, vars: w.vars, drop: w.drop, supposed: w.supposed, loads: w.loads}
	p.adopt(sub.parse(code).Parts)
}

// child adds the part for the words that a wrapper starts.
func (w *walker) child(p *Part, words []word, redirs []*syntax.Redirect) {
	if len(words) == 0 {
		return
	}
	if w.unwrap >= maxUnwrap*4 {
		p.opaque("nested too deeply")
		return
	}
	w.unwrap++
	funcs := w.funcs
	w.funcs = nil // programs start programs, never functions of the script
	got := w.collect(func() { w.run(Part{Kind: KindCommand}, words, redirs) })
	w.unwrap, w.funcs = w.unwrap-1, funcs
	p.adopt(got)
}

// declare walks export, declare and similar builtins.
func (w *walker) declare(c *syntax.DeclClause) {
	opaque := ""
	children := w.collect(func() {
		for _, a := range c.Args {
			w.substitutions(a)
			w.declared(a)
			if why := w.assigned(a); why != "" {
				opaque = why
			}
		}
	})
	src := w.source(c)
	w.emit(&Part{
		Argv: strings.Fields(src), Text: src, Kind: KindPlain, Opaque: opaque != "", Why: opaque, Children: children,
		offset: int(c.Pos().Offset()), words: []word{{value: src, text: src}}, cwd: w.cwd,
	})
}

// declared records the declaration of an integer variable. Bash
// evaluates its value as arithmetic when it is assigned.
func (w *walker) declared(a *syntax.Assign) {
	if a.Name == nil && a.Value != nil {
		if flags := a.Value.Lit(); flags == "" || strings.HasPrefix(flags, "-") && strings.Contains(flags, "i") {
			w.arith.names = true
		}
	}
}

// assigned returns why it is unknown what runs after an assignment, or "".
func (w *walker) assigned(a *syntax.Assign) string {
	if a.Name == nil {
		if a.Value == nil {
			return ""
		}
		if v := w.readOne(a.Value); !v.known || runsWhenEvaluated(v.value) {
			return "a declaration that is not known before it runs"
		}
		return ""
	}
	value, known := "", true
	if a.Value != nil {
		v := w.readOne(a.Value)
		value, known = v.value, v.known
		w.noteData(&v)
	}
	return changesPrograms(a.Name.Value, value, known)
}

func readsStdin(redirs []*syntax.Redirect) bool {
	for _, r := range redirs {
		switch r.Op {
		case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.RdrInOut, syntax.DplIn:
			return true
		}
	}
	return false
}
