package egress

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"chorus/internal/redact"
)

// needle is one encoding of a value, and its replacement.
type needle struct {
	text, instead []byte
	folded        bool // text is in lower case and is found in any case
}

// newNeedle returns a needle. Short ones are found only as they are: in another case they may be words.
func newNeedle(text string, instead []byte) needle {
	if len(text) < minEncoded {
		return needle{text: []byte(text), instead: instead}
	}
	return needle{redact.Fold([]byte(text)), instead, true}
}

// minEncoded is the shortest encoded form that is searched for: a shorter one occurs by chance.
const minEncoded = 8

// needles returns the encodings of all values that a host may know, longest first.
func (s *substituter) needles() []needle {
	var out []needle
	for _, rule := range s.rules.secrets {
		if !rule.mayCarry(s.to) {
			continue
		}
		v, err := s.fetch(rule)
		if err != nil {
			continue // it could not be sent either
		}
		instead := []byte(placeholder(rule.Name))
		out = append(out, newNeedle(v, instead))
		for _, other := range encodings(v) {
			if len(other) >= minEncoded && other != v {
				out = append(out, newNeedle(other, instead))
			}
			// If answers are searched with their escapes decoded, those of the value must be decoded too.
			if plain, _, ok := redact.Unescape([]byte(other)); ok && len(plain.Text) >= minValue && string(plain.Text) != v {
				out = append(out, newNeedle(string(plain.Text), instead))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b needle) int { return len(b.text) - len(a.text) })
	return out
}

// encodings returns the forms in which servers return what they were sent.
func encodings(v string) []string {
	out := []string{v, asJSON(v), url.QueryEscape(v), url.PathEscape(v), html.EscapeString(v), hex.EncodeToString([]byte(v))}
	for _, code := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 { // base64 depends on what precedes it
			text := code.EncodeToString([]byte(strings.Repeat("\x00", before) + v))
			first := (before*8 + 5) / 6
			whole := (before + len(v)) * 8 / 6 // the last character may depend on what follows
			out = append(out, text[first:whole])
		}
	}
	return out
}

// redactor passes bytes on with needles replaced. It holds back only what may be
// the start of one, so that a stream of events is not delayed.
type redactor struct {
	src     io.Reader
	needles []needle
	in, out []byte
	buf     []byte
	err     error
	strict  bool // end the stream at a needle instead of replacing it
}

// errEcho ends the stream of a strict redactor.
var errEcho = errors.New("the answer holds a secret's value")

func newRedactor(src io.Reader, needles []needle) *redactor {
	return &redactor{src: src, needles: needles, buf: make([]byte, 32<<10)}
}

func (c *redactor) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		var n int
		n, c.err = c.src.Read(c.buf)
		c.in = append(c.in, c.buf[:n]...)
		c.advance(c.err != nil)
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// advance moves what needs no more input from in to out. last means that nothing follows.
func (c *redactor) advance(last bool) {
	c.out = c.out[:0]
	for {
		from, to, found := c.next()
		if hold := c.begun(); !last && hold <= from {
			c.out = append(c.out, c.in[:hold]...)
			c.in = append(c.in[:0], c.in[hold:]...)
			return
		}
		c.out = append(c.out, c.in[:from]...)
		if found == nil {
			c.in = c.in[:0]
			return
		}
		if c.strict {
			c.in, c.err = nil, errEcho
			return
		}
		c.out = append(c.out, found.instead...)
		c.in = c.in[to:]
	}
}

// view is the input, unchanged or with its escapes decoded.
type view struct {
	text, folded []byte
	at           func(int) int // maps a position in it to the input
}

// views returns a text unchanged, and with escapes decoded once and twice, for JSON in JSON. whole omits
// possibly incomplete escapes at the end of each; such views are only good for telling what may begin.
func views(text []byte, whole bool) []view {
	at := func(i int) int { return i }
	var out []view
	for range 3 {
		out = append(out, view{text, redact.Fold(bytes.Clone(text)), at})
		v, open, ok := redact.Unescape(text)
		for whole && open < len(text) { // the text before it may now end in an incomplete escape
			text = text[:open]
			v, open, ok = redact.Unescape(text)
			out[len(out)-1] = view{text, redact.Fold(bytes.Clone(text)), at}
		}
		if !ok {
			break
		}
		outer := at
		text, at = v.Text, func(i int) int { return outer(v.At(i)) }
	}
	return out
}

func (v view) search(n *needle) []byte {
	if n.folded {
		return v.folded
	}
	return v.text
}

// next finds the first needle, the longest of those that start there. If
// there is none, it returns nil and the end of in.
func (c *redactor) next() (from, to int, found *needle) {
	from, to = len(c.in), len(c.in)
	for _, v := range views(c.in, false) {
		for i := range c.needles {
			n := &c.needles[i]
			j := bytes.Index(v.search(n), n.text)
			if j < 0 {
				continue
			}
			begin, end := v.at(j), v.at(j+len(n.text))
			if begin < from || found != nil && begin == from && end > to {
				from, to, found = begin, end, n
			}
		}
	}
	return from, to, found
}

// begun returns where the first needle starts that may continue in
// the next read, or the end of in if none does.
func (c *redactor) begun() int {
	at := len(c.in)
	for _, v := range append(views(c.in, true), view{c.in, redact.Fold(bytes.Clone(c.in)), func(i int) int { return i }}) {
		at = min(at, v.at(len(v.text)))
		for i := range c.needles {
			n := &c.needles[i]
			text := v.search(n)
			for j := max(0, len(text)-len(n.text)+1); j < len(text) && v.at(j) < at; j++ {
				if bytes.HasPrefix(n.text, text[j:]) {
					at = v.at(j)
					break
				}
			}
		}
	}
	return at
}

// redactText redacts a whole text.
func redactText(text string, needles []needle) string {
	if len(needles) == 0 || text == "" {
		return text
	}
	c := redactor{needles: needles, in: []byte(text)}
	c.advance(true)
	return string(c.out)
}

func redactHeader(h http.Header, needles []needle) {
	for _, values := range h {
		for i, v := range values {
			values[i] = redactText(v, needles)
		}
	}
}
