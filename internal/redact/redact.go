// Package redact removes secrets from text: known values, tokens of known formats (formats.go), values after
// names such as "password", and words that look random. Each becomes "[redacted:kind]".
//
// It promises that doing it twice changes nothing more, that it takes a few milliseconds for a megabyte, and
// that commit hashes, checksums of lock files, UUIDs, ULIDs and pictures in base64 stay readable. It cannot
// promise to find a secret that looks like an ordinary word and that nobody has named.
package redact

import (
	"slices"
	"strings"
)

// Options say what is known beforehand.
type Options struct {
	// Known are secrets themselves, such as keys from the environment and the configuration. Values
	// shorter than six bytes are ignored: redacting them would garble everything.
	Known []string
}

// Redactor removes secrets. It is immutable and may be shared.
type Redactor struct {
	known matcher
}

// New returns a redactor. The zero Options know no values, only formats and names.
func New(o Options) *Redactor { return &Redactor{known: matcherOf(allForms(o.Known))} }

// Text returns text without its secrets.
func (r *Redactor) Text(text string) string {
	out, _ := r.piece(text, false)
	return out
}

// HasKnown reports whether a text contains one of the known values in
// any of the spellings that are searched for.
func (r *Redactor) HasKnown(text string) bool { return r.known.replace(text) != text }

// Clipped is Text for a text that was cut off, such as a title: it also
// redacts the beginning of a secret at the end.
func (r *Redactor) Clipped(text string) string {
	end := r.known.tail(text)
	word := text[strings.LastIndexAny(text, " \t\n\"'=")+1:]
	if beginsToken(word) {
		end = min(end, len(text)-len(word))
	}
	out := r.Text(text[:end])
	if end < len(text) {
		out += mark("clipped")
	}
	return out
}

// piece redacts text that follows other text. data says whether that ended in a line of
// encoded data; the returned value says the same about this text.
func (r *Redactor) piece(text string, data bool) (string, bool) {
	text = r.known.replace(text)
	for {
		// Redacting a secret may expose another one next to it. Every round leaves less that
		// is not a mark, so this ends, mostly after the second round.
		s := scanner{text: text, data: data}
		s.run()
		if len(s.cuts) == 0 {
			return text, s.data
		}
		text = s.result()
	}
}

const (
	markHead = "[redacted:"
	maxMark  = 40 // the longest kind is far shorter
)

func mark(kind string) string { return markHead + kind + "]" }

// markAt returns the length of the mark that begins at i, or 0 if there is none.
func markAt[T string | []byte](text T, i int) int {
	if len(text)-i < len(markHead) || string(text[i:i+len(markHead)]) != markHead {
		return 0
	}
	for n := len(markHead); n < maxMark && i+n < len(text); n++ {
		c := text[i+n]
		if c == ']' {
			return n + 1
		}
		if c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return 0
		}
	}
	return 0
}

// cut is a part of the text that a mark replaces.
type cut struct {
	from, to int
	kind     string
}

// scanner reads a text once and collects what must be replaced.
type scanner struct {
	text string
	cuts []cut
	at   int  // everything before it is done
	data bool // the previous line ended in encoded data
}

func (s *scanner) result() string {
	var out strings.Builder
	out.Grow(len(s.text))
	from := 0
	for _, c := range s.cuts {
		out.WriteString(s.text[from:c.from])
		out.WriteString(mark(c.kind))
		from = c.to
	}
	out.WriteString(s.text[from:])
	return out.String()
}

// cut records a secret and continues after it.
func (s *scanner) cut(from, to int, kind string) {
	s.cuts = append(s.cuts, cut{from, to, kind})
	s.at = to
}

// done returns where the last cut ended; nothing before it is examined again.
func (s *scanner) done() int {
	if len(s.cuts) == 0 {
		return 0
	}
	return s.cuts[len(s.cuts)-1].to
}

func (s *scanner) run() {
	for s.at < len(s.text) {
		i := s.at
		s.at++
		switch class[s.text[i]] {
		case plain:
		case letter:
			s.word(i)
		case separator:
			s.separator(i)
		case tilde:
			s.azure(i)
		case dash:
			s.block(i)
		case bracket:
			if n := markAt(s.text, i); n > 0 {
				s.at = i + n
			}
		case newline:
			s.data = s.data && s.dataLine(i)
		}
	}
}

// word examines a run of letters, digits and other characters of tokens.
func (s *scanner) word(i int) {
	end := i
	for end < len(s.text) && inRun[s.text[end]] {
		end++
	}
	start := i
	if i > s.done() && s.text[i-1] == '\\' && end-i > 1 && strings.IndexByte("nrt", s.text[i]) >= 0 {
		start++ // the rest of an escape: "\nsk-…"
	}
	for p := start; p < end; {
		if s.startsToken(p) {
			if from, n, kind := s.token(p); n > 0 {
				s.cut(from, from+n, kind)
				return
			}
		}
		for p < end && class[s.text[p]] == letter {
			p++
		}
		for p < end && class[s.text[p]] != letter {
			p++
		}
	}
	s.at = end
	if end-start >= leastRandom {
		s.random(start, end)
	}
}

// dataLine reports whether the line that ends at i is full of encoded data or begins it.
func (s *scanner) dataLine(i int) bool {
	from := strings.LastIndexByte(s.text[:i], '\n') + 1
	line := strings.TrimSpace(s.text[from:i])
	if strings.HasPrefix(line, blockHead) {
		return true
	}
	return len(line) >= leastDataLine && strings.IndexFunc(line, func(r rune) bool { return r > 127 || !inRun[byte(r)] && r != '=' }) < 0
}

// What the scanner does with a byte.
const (
	plain = iota
	letter
	separator
	dash
	tilde
	bracket
	newline
)

var class = func() (t [256]byte) {
	for c := range 256 {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			t[c] = letter
		case c == ':' || c == '=':
			t[c] = separator
		}
	}
	t['-'], t['~'], t['['], t['\n'] = dash, tilde, bracket, newline
	return t
}()

// inRun are the bytes of base64 in both alphabets.
var inRun = func() (t [256]bool) {
	for c := range 256 {
		t[c] = class[c] == letter || slices.Contains([]byte("+/_-"), byte(c))
	}
	return t
}()
