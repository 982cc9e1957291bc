package shell

import (
	"slices"
	"strings"
)

// scripted handles sed and awk. It reads their scripts, because they may start programs and write files.
func (w *walker) scripted(p *Part, words []word, rd *reading) {
	u := &rd.usage
	var scripts []word
	for i := range u.options {
		if g := &u.options[i]; g.spec.effect == effectScript {
			scripts = append(scripts, g.value)
		}
	}
	if len(scripts) == 0 && !u.has(effectFile) {
		if len(u.operands) == 0 {
			return
		}
		scripts = append(scripts, *u.operands[0].word)
	}
	var text []string
	for _, s := range scripts {
		if !s.known {
			p.opaque("the " + rd.name + " script is not known before it runs")
			return
		}
		text = append(text, s.value)
	}
	code := strings.Join(text, "\n")
	if rd.row().words == wordsAwk {
		if why := awkRuns(code); why != "" {
			p.opaque(why)
		}
		return
	}
	files, why := readSed(code)
	if why != "" {
		p.opaque(why)
	}
	for _, f := range files {
		w.written(p, knownWord(f), "the sed script writes a file", false)
	}
}

// awkScan splits an awk program into tokens as awk does, and looks for what starts programs or writes files.
type awkScan struct {
	code     string
	at       int
	operand  bool // the last token was a value, so a slash divides
	either   bool // after the last token, a slash may divide or begin a regular expression
	printing bool // in a print statement, where > writes
	depth    int  // parenthesis depth in the print statement
	forks    int  // slashes that were read both ways
}

// awkRuns returns why an awk program may start programs or write files, or "".
func awkRuns(code string) string {
	if (awkScan{code: code}).runs() {
		return "awk code that starts programs or writes files"
	}
	return ""
}

func (s awkScan) runs() bool {
	for s.at < len(s.code) {
		c := s.code[s.at]
		switch {
		case c == '"' || c == '/' && !s.operand && !s.either:
			if !s.quoted(c) {
				return true
			}
		case c == '/' && s.either:
			divides := s
			divides.either, divides.operand, divides.forks = false, true, s.forks+1
			if s.forks >= 6 || divides.runs() {
				return true
			}
			s.either, s.operand, s.forks = false, false, s.forks+1
		case isWordByte(c):
			if s.word() {
				return true
			}
		case c == '#':
			for s.at < len(s.code) && s.code[s.at] != '\n' {
				s.at++
			}
		default:
			if s.sign(c) {
				return true
			}
		}
	}
	return false
}

// quoted skips a string or regular expression. It returns false if its end is not certain.
func (s *awkScan) quoted(end byte) bool {
	bracket := false
	for s.at++; s.at < len(s.code); s.at++ {
		switch c := s.code[s.at]; {
		case c == '\\':
			s.at++
		case c == '\n' || c == end && bracket: // inside brackets, a slash ends the expression only for some awks
			return false
		case c == end:
			s.at++
			s.operand, s.either = true, false
			return true
		case end == '/' && c == '[':
			bracket = true
		case end == '/' && c == ']':
			bracket = false
		}
	}
	return false
}

func (s *awkScan) word() (runs bool) {
	start := s.at
	for s.at < len(s.code) && isWordByte(s.code[s.at]) {
		s.at++
	}
	s.operand, s.either = true, false
	switch s.code[start:s.at] {
	case "print", "printf":
		s.printing, s.depth, s.operand = true, 0, false
	case "system", "getline":
		return true
	case "in", "return", "case", "else", "do", "while", "if", "for", "delete", "exit", "default":
		s.operand = false
	case "length":
		s.either = true
	}
	return false
}

// sign reads anything that is not a word, a string or a regular expression.
func (s *awkScan) sign(c byte) (runs bool) {
	s.at++
	rest := s.code[s.at:]
	switch c {
	case ' ', '\t', '\r':
		return false
	case '\\':
		s.at = min(s.at+1, len(s.code))
		return false
	case '|':
		if !strings.HasPrefix(rest, "|") {
			return true
		}
		s.at++
	case '@':
		return true
	case '>':
		if s.printing && s.depth <= 0 && !strings.HasPrefix(rest, "=") {
			return true
		}
	case '(', '[':
		s.depth++
	case ')', ']':
		s.depth--
	case '+', '-':
		if strings.HasPrefix(rest, string(c)) {
			s.at++
			s.operand, s.either = true, true
			return false
		}
	case '\n':
		s.printing = s.printing && !s.operand // a statement continues after a comma
	case ';', '{', '}':
		s.printing = false
	}
	s.operand, s.either = c == ']', c == ')'
	return false
}

func isWordByte(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// sedReader reads a sed script as GNU sed does. Anything it does not understand is opaque.
type sedReader struct {
	code  string
	at    int
	files []string // that the script writes
	why   string
}

// readSed returns the files that a sed script writes, and why it may do more than edit text.
func readSed(code string) (files []string, why string) {
	r := &sedReader{code: code}
	for r.why == "" && r.at < len(code) {
		r.command()
	}
	return r.files, r.why
}

func (r *sedReader) fail() { r.why = "a sed script that may start programs or write files" }

func (r *sedReader) next() byte {
	if r.at >= len(r.code) {
		return 0
	}
	r.at++
	return r.code[r.at-1]
}

func (r *sedReader) peek() byte {
	if r.at >= len(r.code) {
		return 0
	}
	return r.code[r.at]
}

func (r *sedReader) skip(chars string) {
	for r.at < len(r.code) && strings.IndexByte(chars, r.code[r.at]) >= 0 {
		r.at++
	}
}

// line returns the rest of the line.
func (r *sedReader) line() string {
	rest, _, _ := strings.Cut(r.code[r.at:], "\n")
	r.at = min(r.at+len(rest)+1, len(r.code))
	return rest
}

// command reads one command with its addresses.
func (r *sedReader) command() {
	r.skip(" \t\n;")
	if r.at >= len(r.code) {
		return
	}
	r.address()
	if r.skip(" \t"); r.peek() == ',' {
		r.at++
		r.skip(" \t")
		r.address()
	}
	r.skip(" \t!")
	switch c := r.next(); c {
	case '{', '}':
		return
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
	case 'l', 'L', 'q', 'Q':
		r.skip(" \t0123456789")
	case '#', 'r', 'R':
		r.line()
		return
	case 'a', 'i', 'c':
		for isContinued(r.line()) && r.at < len(r.code) {
		}
		return
	case ':', 'b', 't', 'T', 'v':
		r.skip(" \t")
		r.skip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
	case 'w', 'W':
		r.file()
		return
	case 's':
		r.substitution()
		return
	case 'y':
		end := r.next()
		from := r.until(end, false)
		if to := r.until(end, false); !from || !to {
			r.fail()
		}
	default:
		r.fail()
	}
	r.end()
}

// end expects the end of a command.
func (r *sedReader) end() {
	r.skip(" \t")
	switch c := r.peek(); c {
	case 0, '\n', ';':
		r.at = min(r.at+1, len(r.code))
	case '}', '#':
	default:
		r.fail()
	}
}

// isContinued reports whether a line ends in a backslash that is not escaped itself.
func isContinued(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

func (r *sedReader) file() {
	if name := strings.TrimLeft(r.line(), " \t"); name != "" {
		r.files = append(r.files, name)
	}
}

// address skips a line number, $, or a regular expression.
func (r *sedReader) address() {
	switch c := r.peek(); {
	case c == '/' || c == '\\':
		if r.at++; c == '\\' {
			c = r.next()
		}
		if !r.until(c, true) {
			r.fail()
		}
		r.skip("IM")
	case c == '$':
		r.at++
	case c >= '0' && c <= '9', c == '+', c == '~':
		r.skip("0123456789+~")
	}
	if r.skip(" \t"); r.peek() == '~' {
		r.skip("~0123456789")
	}
}

// until skips past an unescaped delimiter. Inside brackets of a regular expression, only
// some seds treat a delimiter as its end, so such a script is not read.
func (r *sedReader) until(end byte, regex bool) bool {
	if end == 0 || end == '\n' || end == '\\' {
		return false
	}
	open := -1
	for r.at < len(r.code) {
		switch c := r.next(); {
		case c == '\\':
			r.at++
		case c == end:
			return open < 0
		case c == '[' && regex && open < 0:
			open = r.at
		case c == ']' && open >= 0 && r.at > open+1:
			open = -1
		}
	}
	return false
}

func (r *sedReader) substitution() {
	end := r.next()
	if !r.until(end, true) || !r.until(end, false) {
		r.fail()
		return
	}
	for {
		switch c := r.peek(); {
		case c == 'w':
			r.at++
			r.file()
			return
		case c >= '0' && c <= '9' || slices.Contains([]byte("gpiImM"), c):
			r.at++
		default: // including e, which runs the line
			r.end()
			return
		}
	}
}
