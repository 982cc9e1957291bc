package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// inline parses spans inside a block and returns them as glyphs.
func inline(text string, base style) []glyph {
	if len(text) > longestInline {
		return glyphs(text, base)
	}
	p := inliner{src: text}
	p.parse(base, "", 0)
	return p.out
}

// openSpan reports whether a text ends inside a code span or strong emphasis, so
// that the lines after it may still change how it is drawn.
func openSpan(text string) bool {
	if !strings.ContainsAny(text, "`*_") || len(text) > longestInline {
		return false
	}
	p := inliner{src: text}
	p.parse(0, "", 0)
	return p.open
}

// Looking for the end of a span costs time for every beginning, so a line longer
// than longestInline is shown as it is, and no span is longer than longestSpan.
const (
	longestInline = 16 << 10
	longestSpan   = 4 << 10
)

type inliner struct {
	src  string
	pos  int
	out  []glyph
	open bool // some opener found no closer
	web  bool // links carry where they lead instead of showing it
}

// maxNesting bounds spans within spans; text deeper than that is shown as it is.
const maxNesting = 8

// parse reads until the closer, or to the end when there is none to look for.
func (p *inliner) parse(st style, closer string, depth int) {
	var run strings.Builder
	flush := func() {
		p.out = append(p.out, glyphs(run.String(), st)...)
		run.Reset()
	}
	defer flush()
	for p.pos < len(p.src) {
		if closer != "" && p.closes(closer) {
			p.pos += len(closer)
			return
		}
		c := p.src[p.pos]
		if c == '\\' && p.pos+1 < len(p.src) && isPunct(p.src[p.pos+1]) {
			run.WriteByte(p.src[p.pos+1])
			p.pos += 2
			continue
		}
		if depth < maxNesting && strings.IndexByte("`*_~[!<", c) >= 0 {
			flush()
			if p.span(c, st, depth) {
				continue
			}
			n := p.run(c)
			run.WriteString(p.src[p.pos : p.pos+n])
			p.pos += n
			continue
		}
		if p.web && c == 'h' && p.bareURL() > 0 {
			flush()
			n := p.bareURL()
			p.out = append(p.out, glyphs(p.src[p.pos:p.pos+n], st|underline)...)
			p.leads(utf8.RuneCountInString(p.src[p.pos:p.pos+n]), p.src[p.pos:p.pos+n])
			p.pos += n
			continue
		}
		run.WriteByte(c)
		p.pos++
	}
}

// bareURL is how long the address is that stands here without any marks; 0: none does.
func (p *inliner) bareURL() int {
	rest := p.src[p.pos:]
	if before, _ := p.around(p.pos, 0); isWord(before) || !strings.HasPrefix(rest, "http://") && !strings.HasPrefix(rest, "https://") {
		return 0
	}
	n := 0
	for n < len(rest) && n < 2048 && rest[n] > ' ' && rest[n] < 0x7f && strings.IndexByte("<>\"`|\\^{}*", rest[n]) < 0 {
		n++
	}
	url := strings.TrimRight(rest[:n], ".,;:!?'_~")
	if strings.Count(url, ")") > strings.Count(url, "(") {
		url = strings.TrimSuffix(url, ")")
	}
	if strings.HasSuffix(url, "/") && strings.Count(url, "/") == 2 {
		return 0
	}
	return len(url)
}

// run is how many times c is repeated here; only emphasis and code marks run.
func (p *inliner) run(c byte) int {
	n := 1
	if strings.IndexByte("`*_~", c) < 0 {
		return n
	}
	for p.pos+n < len(p.src) && p.src[p.pos+n] == c {
		n++
	}
	return n
}

// span tries to read a span that begins with c here. On false nothing moved.
func (p *inliner) span(c byte, st style, depth int) bool {
	switch c {
	case '`':
		return p.code(st)
	case '*', '_', '~':
		return p.emphasis(c, st, depth)
	case '!':
		if strings.HasPrefix(p.src[p.pos:], "![") {
			return p.link(st, 1)
		}
	case '[':
		return p.link(st, 0)
	case '<':
		return p.autolink(st)
	}
	return false
}

func (p *inliner) code(st style) bool {
	n := p.run('`')
	ticks := p.src[p.pos : p.pos+n]
	limit := min(len(p.src), p.pos+longestSpan)
	for i := p.pos + n; i < limit; {
		j := strings.Index(p.src[i:limit], ticks)
		if j < 0 {
			break
		}
		end := i + j
		if after := end + n; after < len(p.src) && p.src[after] == '`' { // a longer run is no closer
			for i = after; i < len(p.src) && p.src[i] == '`'; i++ {
			}
			continue
		}
		body := strings.ReplaceAll(p.src[p.pos+n:end], "\n", " ")
		if len(body) > 2 && body[0] == ' ' && body[len(body)-1] == ' ' && strings.TrimSpace(body) != "" {
			body = body[1 : len(body)-1]
		}
		p.out = append(p.out, glyphs(body, st|codeSpan)...)
		p.pos = end + n
		return true
	}
	p.open = true
	return false
}

// emphasis reads *…*, **…**, ***…***, the same with underscores, and ~~…~~.
func (p *inliner) emphasis(c byte, st style, depth int) bool {
	n := p.run(c)
	before, after := p.around(p.pos, n)
	if unicode.IsSpace(after) || c == '_' && isWord(before) || c == '~' && n != 2 || n > 3 {
		return false
	}
	closer := p.src[p.pos : p.pos+n]
	if !p.hasCloser(p.pos+n, closer) {
		if n > 1 {
			p.open = true
		}
		return false
	}
	add := map[int]style{1: italic, 2: bold, 3: bold | italic}[n]
	if c == '~' {
		add = strike
	}
	p.pos += n
	p.parse(st|add, closer, depth+1)
	return true
}

// hasCloser looks ahead for the end of an emphasis, stepping over code spans.
func (p *inliner) hasCloser(from int, closer string) bool {
	q := inliner{src: p.src[:min(len(p.src), from+longestSpan)], pos: from}
	for q.pos < len(q.src) {
		switch {
		case q.pos > from && q.closes(closer):
			return true
		case q.src[q.pos] == '\\' && q.pos+1 < len(q.src):
			q.pos += 2
		case q.src[q.pos] == '`':
			if !q.code(0) {
				q.pos += q.run('`')
			}
		case q.src[q.pos] == closer[0]:
			q.pos += q.run(closer[0])
		default:
			q.pos++
		}
	}
	return false
}

// closes reports whether the closer stands here and can close. A longer run of
// the same mark closes too when an inner span has already taken its part.
func (p *inliner) closes(closer string) bool {
	if !strings.HasPrefix(p.src[p.pos:], closer) {
		return false
	}
	before, after := p.around(p.pos, len(closer))
	if unicode.IsSpace(before) || before == 0 {
		return false
	}
	switch {
	case closer[0] == '_' && isWord(after):
		return false
	case closer == "*" && after == '*' || closer == "_" && after == '_':
		return p.run(closer[0])%2 == 1 && p.run(closer[0]) != 2
	}
	return true
}

func (p *inliner) around(at, n int) (before, after rune) {
	if at > 0 {
		before, _ = utf8.DecodeLastRuneInString(p.src[:at])
	}
	after = ' '
	if at+n < len(p.src) {
		after, _ = utf8.DecodeRuneInString(p.src[at+n:])
	}
	return before, after
}

// link reads [text](url), and ![alt](url) with skip 1.
func (p *inliner) link(st style, skip int) bool {
	text, end, ok := bracketed(p.src, p.pos+skip, '[', ']')
	if !ok || end >= len(p.src) || p.src[end] != '(' {
		return false
	}
	target, end, ok := bracketed(p.src, end, '(', ')')
	if !ok || strings.Contains(target, "\n") {
		return false
	}
	url, _, _ := strings.Cut(strings.TrimSpace(target), " ")
	url = strings.Trim(url, "<>")
	inner := inliner{src: text, web: p.web}
	inner.parse(st|underline, "", maxNesting/2)
	if p.web && len(inner.out) == 0 {
		inner.out = glyphs(url, st|underline)
	}
	p.out = append(p.out, inner.out...)
	if p.web {
		p.leads(len(inner.out), url)
		p.pos = end
		return true
	}
	if shown := plain(inner.out); url != "" && shown != url && "mailto:"+shown != url {
		if shown != "" {
			url = " (" + url + ")"
		}
		p.out = append(p.out, glyphs(url, st|dim)...)
	}
	p.pos = end
	return true
}

// bracketed returns what stands between a balanced pair of brackets and the
// place behind it.
func bracketed(s string, at int, opening, closing byte) (inside string, end int, ok bool) {
	depth := 0
	for i := at; i < len(s) && i < at+longestSpan; i++ {
		switch s[i] {
		case '\\':
			i++
		case opening:
			depth++
		case closing:
			if depth--; depth == 0 {
				return s[at+1 : i], i + 1, true
			}
		}
	}
	return "", 0, false
}

func (p *inliner) autolink(st style) bool {
	end := strings.IndexByte(p.src[p.pos:], '>')
	if end < 0 || end > 2048 {
		return false
	}
	url := p.src[p.pos+1 : p.pos+end]
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "mailto:") ||
		strings.ContainsAny(url, " \n<") {
		return false
	}
	shown := glyphs(url, st|underline)
	p.out = append(p.out, shown...)
	if p.web {
		p.leads(len(shown), url)
	}
	p.pos += end + 1
	return true
}

// leads makes the last n glyphs a link.
func (p *inliner) leads(n int, url string) {
	for i := len(p.out) - n; i < len(p.out); i++ {
		p.out[i].link = url
	}
}

func isPunct(c byte) bool {
	return c > 0x20 && c < 0x7f && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z')
}

func isWord(r rune) bool { return r != 0 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
