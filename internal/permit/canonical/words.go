package canonical

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// expanding are the characters that make an unquoted word expand to
// file names, several words or a home directory.
const expanding = "*?[{~"

// exact returns the text of a literal that is exactly one word. A pattern is
// excluded: it may become file names that look like options.
func exact(word *syntax.Word) (string, bool) {
	lit, ok := literal(word)
	switch {
	case ok && !strings.ContainsAny(lit, expanding):
		return lit, true
	case !ok && word != nil && len(word.Parts) == 1: // \< and \( of test
		if p, is := word.Parts[0].(*syntax.Lit); is && !strings.ContainsAny(p.Value, expanding+"\n") && !strings.Contains(p.Value, `\\`) {
			return strings.ReplaceAll(p.Value, `\`, ""), true
		}
	}
	if !ok {
		return "", false
	}
	for _, p := range word.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.ContainsAny(l.Value, expanding) {
			return "", false
		}
	}
	return lit, true
}

// literal returns the text of a word that expands to itself. It returns
// false if the word does not, or is ambiguous.
func literal(word *syntax.Word) (string, bool) {
	if word == nil {
		return "", false
	}
	if len(word.Parts) == 1 { // most words, without copying
		switch p := word.Parts[0].(type) {
		case *syntax.Lit:
			return p.Value, !strings.Contains(p.Value, `\`)
		case *syntax.SglQuoted:
			return p.Value, !p.Dollar
		}
	}
	var b strings.Builder
	for _, p := range word.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.Contains(p.Value, `\`) {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			for _, q := range p.Parts {
				lit, ok := q.(*syntax.Lit)
				if !ok {
					return "", false
				}
				s, ok := unquoted(lit.Value, true)
				if !ok {
					return "", false
				}
				b.WriteString(s)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unquoted reads the text inside double quotes or a here-document.
func unquoted(s string, quotes bool) (string, bool) {
	if !strings.Contains(s, `\`) {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch next := s[i+1]; {
			case next == '\n':
				return "", false // a line continuation, which parsers read differently
			case next == '$' || next == '`' || next == '\\' || next == '"' && quotes:
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}

// quote puts a text in single quotes.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func putQuoted(b *strings.Builder, s string) {
	if strings.Contains(s, "'") {
		b.WriteString(quote(s))
		return
	}
	b.WriteByte('\'')
	b.WriteString(s)
	b.WriteByte('\'')
}

// inDouble escapes a text for double quotes or a here-document.
func inDouble(s string, quotes bool) string {
	if !strings.ContainsAny(s, "$`\\\"") {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c == '$' || c == '`' || c == '\\' || c == '"' && quotes {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (w *writer) word(word *syntax.Word) string {
	if len(word.Parts) == 1 {
		if lit, ok := word.Parts[0].(*syntax.Lit); ok && isPlainBare(lit.Value) {
			return lit.Value // most words, without copying
		}
	}
	var b strings.Builder
	w.parts(&b, word.Parts, false)
	return b.String()
}

// putWord writes a word directly to the output.
func (w *writer) putWord(word *syntax.Word) { w.parts(&w.out, word.Parts, false) }

// putAssigned writes the word behind an equals sign, where ~ is also expanded after colons.
func (w *writer) putAssigned(word *syntax.Word) { w.parts(&w.out, word.Parts, true) }

func (w *writer) parts(b *strings.Builder, parts []syntax.WordPart, assigned bool) {
	before := b.Len()
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if isPlainBare(p.Value) {
				b.WriteString(p.Value)
			} else {
				b.WriteString(w.bare(p.Value, i == 0, len(parts) == 1, assigned))
			}
		case *syntax.SglQuoted:
			s := p.Value
			if p.Dollar {
				s = w.ansi(s)
			}
			putQuoted(b, s)
		case *syntax.DblQuoted:
			if p.Dollar {
				w.fail(`$"…" is translated when it runs`)
			}
			b.WriteByte('"')
			for _, q := range p.Parts {
				b.WriteString(w.quotedPart(q, true))
			}
			b.WriteByte('"')
		default:
			b.WriteString(w.expansion(p, false))
		}
	}
	if b.Len() == before {
		b.WriteString("''")
	}
}

// quotedPart writes a part of a text in double quotes or a here-document.
func (w *writer) quotedPart(p syntax.WordPart, quotes bool) string {
	lit, ok := p.(*syntax.Lit)
	if !ok {
		return w.expansion(p, true)
	}
	s, ok := unquoted(lit.Value, quotes)
	if !ok {
		return w.fail("a line goes on inside quotes", `leave out the \ at its end`)
	}
	return inDouble(s, quotes)
}

func (w *writer) expansion(p syntax.WordPart, quoted bool) string {
	switch p := p.(type) {
	case *syntax.ParamExp:
		return w.parameter(p)
	case *syntax.CmdSubst:
		if p.TempFile || p.ReplyVar {
			w.fail("${ …; } means different things to different shells", "use $(…)")
		}
		return "$(" + w.child(p.Stmts) + ")"
	case *syntax.ArithmExp:
		w.onlyBash("$(( ))")
		if p.Bracket {
			w.fail("$[ ] is old", "use $(( ))")
		}
		return "$((" + w.arithmetic(p.X) + "))"
	case *syntax.ProcSubst:
		w.onlyBash("process substitution")
		if quoted {
			w.fail("a process substitution stands in quotes")
		}
		return p.Op.String() + w.child(p.Stmts) + ")"
	case *syntax.ExtGlob:
		return w.fail("extended patterns depend on an option of the shell", "use several simple patterns")
	default:
		return w.fail("it uses syntax that is not judged")
	}
}

// bare writes text that was not quoted. Patterns, braces and ~ keep their
// meaning; everything else that could be special is quoted.
func (w *writer) bare(s string, first, whole, assigned bool) string {
	var b, quoted strings.Builder
	flush := func() {
		if quoted.Len() > 0 {
			b.WriteString(quote(quoted.String()))
			quoted.Reset()
		}
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\':
			if i++; i >= len(s) || s[i] == '\n' {
				return w.fail("a line goes on in the middle of a word", `leave out the \ at its end`)
			}
			r, size := utf8.DecodeRuneInString(s[i:])
			quoted.WriteRune(r)
			i += size - 1
			continue
		case c >= 0x80:
			r, size := utf8.DecodeRuneInString(s[i:])
			quoted.WriteRune(r)
			i += size - 1
			continue
		case isBare(c), c == '!' && (i == 0 || s[i-1] == '['), c == '~' && tildeStays(s, i, first, whole, assigned):
			flush()
			b.WriteByte(c)
		case c == '~' && (first && i == 0 || assigned && i > 0 && s[i-1] == ':'):
			return w.fail("~ with a name behind it is somebody's home", "write its path, or put it in quotes")
		default:
			quoted.WriteByte(c)
		}
	}
	flush()
	if strings.Contains(s, "{") && (strings.Contains(s, ",") || strings.Contains(s, "..")) {
		w.onlyBash("{a,b}")
	}
	return b.String()
}

// tildeStays reports whether a ~ stays unquoted: it is the user's home directory, or it is inside a word,
// where it means nothing. Others could be somebody else's home directory and are quoted.
func tildeStays(s string, i int, first, whole, assigned bool) bool {
	rest := s[i+1:]
	if i > 0 && s[i-1] != ':' && s[i-1] != '=' {
		return true
	}
	home := rest == "" && whole || strings.HasPrefix(rest, "/") || assigned && strings.HasPrefix(rest, ":")
	return home && (first && i == 0 || assigned && i > 0 && s[i-1] == ':')
}

// isPlainBare reports whether a text means the same with and without quotes and has no braces.
func isPlainBare(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isBare(c) || c == '{' {
			return false
		}
	}
	return s != ""
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_./:=@%+,^-*?[]{}", c) >= 0
}

// ansi decodes the text of $'…'.
func (w *writer) ansi(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return w.fail(`$'…' ends in a \`)
		}
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '\\', '\'', '"':
			b.WriteByte(s[i])
		default:
			return w.fail(`$'\`+s[i:i+1]+`' is an escape that is not judged`, "use printf")
		}
	}
	return b.String()
}

func (w *writer) hereDocument(r *syntax.Redirect) {
	quoted, ok := false, len(r.Word.Parts) == 1
	name := ""
	if ok {
		switch p := r.Word.Parts[0].(type) {
		case *syntax.Lit:
			name, quoted = strings.CutPrefix(p.Value, `\`)
		default:
			quoted = true
			name, ok = literal(r.Word)
		}
	}
	if !ok || strings.IndexFunc(name, func(c rune) bool { return !isName("_"+string(c)) && c != '-' }) >= 0 || name == "" || name[0] == '-' {
		w.fail("the end of a here-document is marked by an unusual word", "use END")
		return
	}
	var body strings.Builder
	if r.Hdoc != nil {
		for _, p := range r.Hdoc.Parts {
			lit, ok := p.(*syntax.Lit)
			switch {
			case ok && quoted:
				body.WriteString(w.untabbed(r, lit.Value))
			case ok:
				body.WriteString(w.quotedPart(&syntax.Lit{Value: w.untabbed(r, lit.Value)}, false))
			case quoted:
				w.fail("a here-document with quotes contains an expansion")
			default:
				body.WriteString(w.expansion(p, true))
			}
		}
	}
	text := body.String()
	if text != "" && !strings.HasSuffix(text, "\n") {
		w.fail("a here-document has no end", "end it with a line "+name)
	}
	for containsLine(text, name) {
		w.delimiter++
		name = fmt.Sprintf("EOF_%d", w.delimiter)
	}
	mark := name
	if quoted {
		mark = quote(name)
	}
	w.put("<<" + mark)
	w.bodies = append(w.bodies, text+name+"\n")
}

// untabbed writes a piece of a here-document. <<- removes leading tabs from its lines.
func (w *writer) untabbed(r *syntax.Redirect, s string) string {
	if r.Op != syntax.DashHdoc {
		return s
	}
	lines := strings.SplitAfter(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.Join(lines, "")
}

func containsLine(text, line string) bool {
	for l := range strings.SplitSeq(text, "\n") {
		if strings.TrimLeft(l, "\t") == line {
			return true
		}
	}
	return false
}
