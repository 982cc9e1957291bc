package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapped adds what a program starts whose purpose is to start another.
func (w *walker) wrapped(p *Part, prog string, words []word, u *usage, redirs []*syntax.Redirect) {
	r := u.row()
	if u.has(effectQuery) {
		return // it prints something and starts nothing
	}
	rest := u.rest[min(r.skip, len(u.rest)):]
	if r.skip > 0 && len(rest) > 0 && rest[0].value == "--" {
		rest = rest[1:]
	}
	loads := w.loads
	defer func() { w.loads = loads }()
	for len(rest) > 0 && r.sets {
		name, value, ok := strings.Cut(rest[0].value, "=")
		if !ok {
			break // every word with "=" is a variable here, even "BASH_FUNC_x%%=…"
		}
		w.noteData(&rest[0])
		if why := changesPrograms(name, value, rest[0].known); why != "" {
			p.opaque(why)
		}
		w.load(name, value)
		rest = rest[1:]
	}
	if len(rest) == 0 || prog == "env" && u.given("-S", "--split-string") != nil {
		return
	}
	if prog == "xargs" {
		rest = w.xargs(p, u, rest)
	}
	if !r.raises {
		p.Kind = KindWrapper
		if !rest[0].known {
			p.Kind = KindCommand
		}
		w.child(p, rest, redirs)
		return
	}
	// People write rules for the outer program, so what it starts can only make the verdict stricter.
	before := len(p.Children)
	w.child(p, rest, redirs)
	markGuess(p.Children[before:])
	p.liftFile(p.Children[before:])
}

// xargs appends the words that it reads from its input, if the script shows them, or an unknown one.
func (w *walker) xargs(p *Part, u *usage, rest []word) []word {
	gap := word{unseen: true, split: true, gaps: oneGap}
	if in := w.printed(); in != nil {
		gap.gaps = &gaps{spans: oneGap.spans, values: []string{*in}}
	} else if w.findsNames() && u.given("-0", "--null") != nil {
		gap.gaps = &gaps{spans: oneGap.spans, plain: true}
	}
	if g := u.given("-I", "-i", "--replace"); g != nil {
		mark := "{}"
		if g.has && g.value.value != "" {
			mark = g.value.value
		}
		return w.replaced(p, rest, mark, gap)
	}
	return append(slices.Clone(rest), gap)
}

// findsNames reports whether find -print0 writes into the pipe. Its output then
// begins with its starting points and is not split into words.
func (w *walker) findsNames() bool {
	if w.stdin == nil {
		return false
	}
	call, ok := w.stdin.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || call.Args[0].Lit() != "find" {
		return false
	}
	null := false
	for _, a := range call.Args[1:] {
		x := w.readOne(a)
		if !x.known && !x.glob || x.value != "-print0" && slices.ContainsFunc([]string{"--", "-print", "-exec", "-ok", "-ls", "-files0"}, func(s string) bool { return strings.HasPrefix(x.value, s) }) {
			return false // it may write something else as well
		}
		null = null || x.value == "-print0"
	}
	return null
}

// replaced puts a gap in place of a marker like {}.
func (w *walker) replaced(p *Part, rest []word, mark string, gap word) []word {
	out := slices.Clone(rest)
	for i := range out {
		if mark == "" || !strings.Contains(out[i].value, mark) {
			continue
		}
		if i == 0 {
			p.opaque("the program comes from the input")
		}
		if out[i].value == mark {
			out[i] = gap
			out[i].value, out[i].text, out[i].unseen = mark, mark, false
			continue
		}
		spans := []Span{}
		for j, s := range strings.Split(out[i].value, mark) {
			if j > 0 {
				spans = append(spans, Span{Gap: true})
			}
			spans = append(spans, Span{Text: s})
		}
		out[i].gaps, out[i].known = &gaps{spans: spans, values: out[i].values()}, false
		if i > 0 && isShell(program(out)) {
			p.opaque("input becomes part of a script")
		}
	}
	return out
}

// evalArgs adds the script that eval gets as words.
func (w *walker) evalArgs(p *Part, words []word) {
	code := make([]string, len(words))
	for i, x := range words {
		if !x.known && !x.glob {
			p.opaque("eval of text that is not known before it runs")
			if v := x.possibleValues(); len(v) > 0 {
				code[i] = v[0]
				continue
			}
		}
		code[i] = x.value
	}
	if !p.Opaque {
		p.Kind = KindWrapper
	}
	w.nested(p, strings.Join(code, " "))
	if p.Opaque {
		markGuess(p.Children)
	}
}

// joined handles a program that joins its arguments into one script.
func (w *walker) joined(p *Part, words []word) {
	if len(words) == 0 {
		return
	}
	w.evalArgs(p, words)
	p.Kind = KindCommand
}

func (w *walker) trap(p *Part, words []word) {
	if len(words) > 0 && words[0].value == "--" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0].value, "-") {
		p.Kind = KindPlain
		return
	}
	if !words[0].known {
		p.opaque("a trap that is not known before it runs")
		return
	}
	p.Kind = KindPlain
	w.nested(p, words[0].value)
}

func isShell(prog string) bool {
	switch prog {
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "rbash", "fish":
		return true
	}
	return false
}

// shellProgram handles sh -c 'code', a script file, and a script on the input.
func (w *walker) shellProgram(p *Part, words []word, redirs []*syntax.Redirect) {
	code, script, found := shellArgs(words[1:])
	switch {
	case found && code != nil:
		if !code.known {
			p.opaque("the script is not known before it runs")
			for _, v := range code.possibleValues() {
				w.nested(p, v)
			}
			markGuess(p.Children)
			return
		}
		if !p.Opaque {
			p.Kind = KindWrapper
		}
		w.nested(p, code.value)
	case script != nil:
		if !script.known || strings.HasPrefix(script.value, "/dev/") || strings.HasPrefix(script.value, "/proc/") {
			p.opaque("the script is not known before it runs")
			break
		}
		at := slices.IndexFunc(words[1:], func(x word) bool { return x.text == script.text })
		p.runsFile(words, at+1, unreadFile)
	default:
		w.shellInput(p, redirs)
	}
}

// shellArgs finds the code of -c or the script's path.
func shellArgs(words []word) (code, script *word, found bool) {
	c := false
	for i := 0; i < len(words); i++ {
		v := words[i].value
		if !words[i].known && words[i].split {
			return &words[i], nil, true
		}
		if (strings.HasPrefix(v, "-") || strings.HasPrefix(v, "+")) && len(v) > 1 && v != "--" {
			if strings.HasPrefix(v, "--") {
				if v == "--rcfile" || v == "--init-file" {
					return &word{value: v}, nil, true
				}
				continue
			}
			c = c || strings.Contains(v[1:], "c")
			if strings.HasSuffix(v, "o") || strings.HasSuffix(v, "O") {
				i++
			}
			if strings.Contains(v[1:], "s") && !c {
				return nil, nil, false
			}
			continue
		}
		if v == "--" || v == "-" {
			continue
		}
		if c {
			return &words[i], nil, true
		}
		return nil, &words[i], true
	}
	return nil, nil, false
}

// shellInput handles a script that comes from a here-document or a pipe.
func (w *walker) shellInput(p *Part, redirs []*syntax.Redirect) {
	for _, r := range redirs {
		body := r.Hdoc
		if r.Op == syntax.WordHdoc {
			body = r.Word
		}
		if body == nil {
			continue
		}
		in := w.join(w.pieces(body.Parts))
		if in.known || in.glob {
			p.Kind = KindWrapper
			w.nested(p, in.value)
			return
		}
	}
	p.opaque("the script comes from the input")
	if in := w.printed(); in != nil {
		before := len(p.Children)
		w.nested(p, *in)
		markGuess(p.Children[before:])
	}
}

func isName(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}
