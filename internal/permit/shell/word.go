package shell

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// word holds what can be known about one word of a command without running it.
type word struct {
	value  string // what the program gets; expansions appear as written
	text   string // how to write it in a shell
	known  bool   // value is exactly what the program gets, as one argument
	home   bool   // begins with an unquoted tilde
	glob   bool   // has an active glob: it may become several arguments
	split  bool   // has an unquoted expansion: it may become any number of arguments
	unseen bool   // stands for arguments that the text does not show
	gaps   *gaps  // nil if everything is known, as for most words
}

// gaps describes a word that is not fully known. Words share it, so it must not be changed.
type gaps struct {
	spans  []Span   // text, with gaps for unknown text
	values []string // possible values, as far as the script shows
	plain  bool     // whatever its value, it does not begin with a dash
}

// spans returns the pieces of the word, or nil if all of it is known.
func (w *word) spans() []Span {
	if w.gaps == nil {
		return nil
	}
	return w.gaps.spans
}

func (w *word) values() []string {
	if w.gaps == nil {
		return nil
	}
	return w.gaps.values
}

func knownWord(v string) word { return word{value: v, text: quote(v), known: true} }

func knownWords(vs []string) []word {
	out := make([]word, len(vs))
	for i, v := range vs {
		out[i] = knownWord(v)
	}
	return out
}

// possibleValues lists the values that the word may have, or nothing if they are unknown.
func (w *word) possibleValues() []string {
	switch {
	case w.known && !w.home && strings.HasPrefix(w.value, "~"):
		return []string{"./" + w.value} // a quoted tilde is an ordinary character
	case w.known || w.glob && len(w.values()) == 0:
		return []string{w.value}
	}
	return w.values()
}

// piece is a part of a word: either literal text or an expansion.
type piece struct {
	text   string // literal text, or the source of an expansion
	quoted bool
	gap    bool     // it is an expansion
	values []string // possible values, for a gap
	plain  bool     // for a gap: it does not begin with a dash
}

// maxValues limits the guesses for one word.
const maxValues = 8

// read converts a parsed word. Brace expansion turns one word into several; all are appended.
func (w *walker) read(to []word, in *syntax.Word) []word {
	if len(in.Parts) == 1 {
		if lit, ok := in.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\*?[{~") {
			return append(to, word{value: lit.Value, text: quote(lit.Value), known: true})
		}
	}
	if hasBrace(in) {
		cp := &syntax.Word{Parts: append([]syntax.WordPart(nil), in.Parts...)}
		if syntax.SplitBraces(cp) {
			if all, ok := braces(cp.Parts, 64); ok {
				for _, parts := range all {
					if x := w.join(w.pieces(parts)); x.value != "" || hasNonLiteral(parts) {
						to = append(to, x) // the shell drops an empty word
					}
				}
				return to
			}
			src := w.source(in)
			return append(to, word{value: src, text: src, split: true, gaps: oneGap})
		}
	}
	return append(to, w.readOne(in))
}

// readOne reads a word without brace expansion.
func (w *walker) readOne(in *syntax.Word) word {
	key := w.cacheKey(in)
	if key == "" {
		return w.join(w.pieces(in.Parts))
	}
	x, ok := w.words[key]
	if !ok {
		x = w.join(w.pieces(in.Parts))
		if w.words == nil {
			w.words = map[string]word{}
		}
		w.words[key] = x
	}
	return x
}

// cacheKey returns the source text of a word that means the same everywhere in a script: plain
// text and variables, once all assignments are known. Long scripts repeat the same few words on
// every line. The text must be exactly what the parser read, so that no other word has the same
// key. It is "" for a word that cannot be cached.
func (w *walker) cacheKey(in *syntax.Word) string {
	if !w.varsKnown {
		return ""
	}
	src := w.source(in)
	if rest, ok := cutSimple(src, in.Parts); !ok || rest != "" {
		return ""
	}
	return src
}

// cutSimple removes the parts from the beginning of a text, as long as they
// are plain text, variables, or these in double quotes.
func cutSimple(src string, parts []syntax.WordPart) (rest string, ok bool) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "\\*?[{~") {
				return "", false
			}
			src, ok = strings.CutPrefix(src, p.Value)
		case *syntax.ParamExp:
			if !isBareParam(p) {
				return "", false
			}
			src, ok = cutParam(src, p)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			if src, ok = strings.CutPrefix(src, `"`); ok {
				if src, ok = cutSimple(src, p.Parts); ok || len(p.Parts) == 0 {
					src, ok = strings.CutPrefix(src, `"`)
				}
			}
		default:
			return "", false
		}
		if !ok {
			return "", false
		}
	}
	return src, ok
}

// cutParam removes $name or ${name}.
func cutParam(src string, p *syntax.ParamExp) (rest string, ok bool) {
	begin, end := "${", "}"
	if p.Short {
		begin, end = "$", ""
	}
	if src, ok = strings.CutPrefix(src, begin); !ok {
		return "", false
	}
	if src, ok = strings.CutPrefix(src, p.Param.Value); !ok {
		return "", false
	}
	return strings.CutPrefix(src, end)
}

func hasNonLiteral(parts []syntax.WordPart) bool {
	return slices.ContainsFunc(parts, func(p syntax.WordPart) bool {
		_, lit := p.(*syntax.Lit)
		return !lit
	})
}

func hasBrace(in *syntax.Word) bool {
	for _, p := range in.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.Contains(lit.Value, "{") {
			return true
		}
	}
	return false
}

// braces expands brace expressions, up to a limit.
func braces(parts []syntax.WordPart, limit int) ([][]syntax.WordPart, bool) {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		br, ok := p.(*syntax.BraceExp)
		if !ok {
			for i := range out {
				out[i] = append(out[i], p)
			}
			continue
		}
		if br.Sequence {
			return nil, false
		}
		var tails [][]syntax.WordPart
		for _, elem := range br.Elems {
			subs, ok := braces(elem.Parts, limit)
			if !ok {
				return nil, false
			}
			tails = append(tails, subs...)
		}
		if len(out)*len(tails) > limit {
			return nil, false
		}
		var next [][]syntax.WordPart
		for _, head := range out {
			for _, tail := range tails {
				next = append(next, slices.Concat(head, tail))
			}
		}
		out = next
	}
	return out, true
}

func (w *walker) pieces(parts []syntax.WordPart) []piece {
	out := make([]piece, 0, pieceCount(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			out = unescape(out, p.Value)
		case *syntax.SglQuoted:
			v := p.Value
			if p.Dollar {
				v = ansiC(v)
			}
			out = append(out, piece{text: v, quoted: true})
		case *syntax.DblQuoted:
			out = append(out, piece{quoted: true})
			for _, q := range p.Parts {
				if lit, ok := q.(*syntax.Lit); ok {
					out = append(out, piece{text: unescapeQuoted(lit.Value), quoted: true})
				} else {
					out = append(out, piece{text: `"` + w.source(q) + `"`, quoted: true, gap: true, values: w.guess(q), plain: w.isPlainVar(q)})
				}
			}
		default:
			out = append(out, piece{text: w.source(p), gap: true, values: w.guess(p)})
		}
	}
	return out
}

// pieceCount returns how many pieces the parts of a word usually become.
func pieceCount(parts []syntax.WordPart) int {
	n := 0
	for _, p := range parts {
		n++
		if q, ok := p.(*syntax.DblQuoted); ok {
			n += len(q.Parts)
		}
	}
	return n
}

// join makes a word from its pieces.
func (w *walker) join(pieces []piece) word {
	if whole, ok := singleExpansion(pieces); ok {
		return whole
	}
	out := word{known: true}
	spans, values := make([]Span, 0, len(pieces)+2), []string{""}
	var value, text strings.Builder
	quoted := false
	for i, p := range pieces {
		value.WriteString(p.text)
		switch {
		case p.gap:
			out.known = false
			out.split = out.split || !p.quoted
			text.WriteString(p.text)
			spans = append(spans, Span{Gap: true})
			values = product(values, p.values)
			continue
		case p.quoted:
			quoted = true
			if p.text != "" {
				text.WriteString(quote(p.text))
			}
		default:
			if i == 0 && strings.HasPrefix(p.text, "~") {
				out.home = true
			}
			if isGlob(p.text) {
				out.glob, out.known = true, false
				spans = append(spans, globSpans(p.text)...)
				text.WriteString(p.text)
				values = product(values, []string{p.text})
				continue
			}
			text.WriteString(p.text)
		}
		spans = append(spans, Span{Text: p.text})
		values = product(values, []string{p.text})
	}
	out.value, out.text = value.String(), text.String()
	if out.known {
		if !out.home || quoted {
			out.text = quote(out.value)
		}
		if out.home && strings.HasPrefix(out.text, "'") {
			out.text = out.value
		}
		return out
	}
	out.gaps = &gaps{spans: spans, values: values, plain: beginsPlain(pieces)}
	return out
}

// beginsPlain reports whether the first piece cannot expand to something that begins with a dash.
func beginsPlain(pieces []piece) bool {
	for _, p := range pieces {
		if p.gap || p.text != "" {
			return p.gap && p.plain
		}
	}
	return false
}

// isPlainVar reports whether a variable only ever holds values that do not begin
// with a dash. The expansion may trim the end of the value.
func (w *walker) isPlainVar(p syntax.WordPart) bool {
	exp, ok := p.(*syntax.ParamExp)
	if !ok || exp.Param == nil || exp.Excl || exp.Length || exp.Index != nil || exp.Repl != nil || exp.Slice != nil {
		return false
	}
	if exp.Exp != nil && exp.Exp.Op != syntax.RemSmallSuffix && exp.Exp.Op != syntax.RemLargeSuffix {
		return false
	}
	return w.plainVars[exp.Param.Value]
}

// singleExpansion returns the word for a lone expansion, perhaps in
// quotes. Most expansions in scripts are like this.
func singleExpansion(pieces []piece) (word, bool) {
	if len(pieces) == 2 && pieces[0].quoted && !pieces[0].gap && pieces[0].text == "" {
		pieces = pieces[1:]
	}
	if len(pieces) != 1 || !pieces[0].gap {
		return word{}, false
	}
	p := pieces[0]
	out := word{value: p.text, text: p.text, split: !p.quoted, gaps: oneGap}
	if len(p.values) > 0 || p.plain {
		out.gaps = &gaps{spans: oneGap.spans, values: p.values[:min(len(p.values), maxValues)], plain: p.plain}
	}
	return out, true
}

// oneGap is for a word about which nothing is known. It must not be changed.
var oneGap = &gaps{spans: []Span{{Gap: true}}}

// product appends every tail to every head. It may change heads.
func product(heads, tails []string) []string {
	if len(heads) == 0 || len(tails) == 0 {
		return nil
	}
	if len(tails) == 1 {
		if tails[0] != "" {
			for i, h := range heads {
				heads[i] = h + tails[0]
			}
		}
		return heads
	}
	out := make([]string, 0, min(len(heads)*len(tails), maxValues))
	for _, h := range heads {
		for _, t := range tails {
			if len(out) < maxValues {
				out = append(out, h+t)
			}
		}
	}
	return out
}

// guess returns the possible values of an expansion, as far as the script shows.
func (w *walker) guess(p syntax.WordPart) []string {
	exp, ok := p.(*syntax.ParamExp)
	if !ok || exp.Param == nil || exp.Excl || exp.Length || exp.Index != nil || exp.Repl != nil || exp.Slice != nil {
		return nil
	}
	var out []string
	switch exp.Param.Value {
	case "HOME":
		out = append(out, "~")
	case "CHORUS_HOME":
		out = append(out, homeMark)
	default:
		out = slices.Clip(w.vars[exp.Param.Value]) // force append to copy
	}
	if exp.Exp != nil {
		switch exp.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull,
			syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			if exp.Exp.Word != nil {
				d := w.join(w.pieces(exp.Exp.Word.Parts))
				out = append(out, d.possibleValues()...)
			}
		}
	}
	return out
}

// source returns the source text of a node.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || from > to || to > len(w.src) {
		return ""
	}
	return w.src[from:to]
}

func isGlob(s string) bool {
	if strings.ContainsAny(s, "*?") {
		return true
	}
	i := strings.IndexByte(s, '[')
	return i >= 0 && strings.IndexByte(s[i:], ']') > 0
}

func globSpans(s string) []Span {
	i := strings.IndexAny(s, "*?[")
	j := strings.LastIndexAny(s, "*?]")
	return []Span{{Text: s[:i]}, {Gap: true}, {Text: s[j+1:]}}
}

// unescape appends unquoted text without its backslashes. Escaped characters count as quoted.
func unescape(out []piece, s string) []piece {
	if !strings.Contains(s, `\`) {
		return append(out, piece{text: s})
	}
	start := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			continue
		}
		if i > start {
			out = append(out, piece{text: s[start:i]})
		}
		_, size := utf8.DecodeRuneInString(s[i+1:])
		if c := s[i+1 : i+1+size]; c != "\n" {
			out = append(out, piece{text: c, quoted: true})
		}
		i += size
		start = i + 1
	}
	if start < len(s) {
		out = append(out, piece{text: s[start:]})
	}
	return out
}

func unescapeQuoted(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiC decodes the contents of $'…'.
func ansiC(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if at := strings.IndexByte(`abeEfnrtv\'"?`, s[i]); at >= 0 {
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[at])
			continue
		}
		switch c := s[i]; c {
		case 'x':
			i += writeNumber(&b, s[i+1:], 16, 2, true)
		case 'u':
			i += writeNumber(&b, s[i+1:], 16, 4, false)
		case 'U':
			i += writeNumber(&b, s[i+1:], 16, 8, false)
		case 'c':
			if i+1 < len(s) {
				i++
				b.WriteByte(s[i] & 0x1f)
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			i += writeNumber(&b, s[i:], 8, 3, true) - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	v, _, _ := strings.Cut(b.String(), "\x00") // bash ends the string at a NUL
	return v
}

func writeNumber(b *strings.Builder, s string, base, most int, single bool) int {
	n := 0
	for n < len(s) && n < most {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	v, _ := strconv.ParseUint("0"+s[:n], base, 64)
	if single {
		b.WriteByte(byte(v))
	} else {
		b.WriteRune(rune(v))
	}
	return n
}

// quote quotes a literal word only if a shell needs it: people write rules with --flag=value without quotes.
func quote(s string) string {
	if !needsQuotes(s) {
		return s
	}
	q, err := syntax.Quote(s, syntax.LangBash)
	if err != nil {
		return strconv.Quote(s)
	}
	return q
}

func needsQuotes(s string) bool {
	if s == "" || s[0] == '~' || s[0] == '#' {
		return true
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c <= ' ' || c == 0x7f:
			return true
		case strings.IndexByte(";\"'()$|&><`\\*?", c) >= 0:
			return true
		case c == '[' && strings.IndexByte(s[i:], ']') > 0:
			return true
		case c == '{' && (strings.IndexByte(s[i:], ',') > 0 || strings.Contains(s[i:], "..")):
			return true
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError || !unicode.IsPrint(r) {
				return true
			}
			i += size - 1
		}
	}
	return false
}

// Join returns the text of a command with these arguments, quoted where needed.
func Join(argv []string) string { return text(knownWords(argv)) }
