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
)

// needle is one encoding of a value, and what replaces it.
type needle struct {
	text, instead []byte
}

// minEncoded is the shortest encoded form that is searched for: a shorter one occurs by chance.
const minEncoded = 8

// needles are the encodings of all values that a host may know, longest first.
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
		out = append(out, needle{[]byte(v), instead})
		for _, other := range encodings(v) {
			if len(other) >= minEncoded && other != v {
				out = append(out, needle{[]byte(other), instead})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b needle) int { return len(b.text) - len(a.text) })
	return out
}

// encodings are the forms in which servers return what they were sent.
func encodings(v string) []string {
	out := []string{asJSON(v), url.QueryEscape(v), url.PathEscape(v), html.EscapeString(v), hex.EncodeToString([]byte(v))}
	for _, code := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 { // base64 depends on what is before it
			text := code.EncodeToString([]byte(strings.Repeat("\x00", before) + v))
			first := (before*8 + 5) / 6
			whole := (before + len(v)) * 8 / 6 // the last character may depend on what follows
			out = append(out, text[first:whole])
		}
	}
	return out
}

// redactor passes bytes on with needles replaced. It holds back only what may be the start of
// one, so that a stream of events is not delayed.
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

// advance moves what needs no more input from in to out; last: nothing follows.
func (c *redactor) advance(last bool) {
	c.out = c.out[:0]
	for {
		at, found := c.next()
		if hold := c.begun(); !last && hold <= at {
			c.out = append(c.out, c.in[:hold]...)
			c.in = append(c.in[:0], c.in[hold:]...)
			return
		}
		c.out = append(c.out, c.in[:at]...)
		if found == nil {
			c.in = c.in[:0]
			return
		}
		if c.strict {
			c.in, c.err = nil, errEcho
			return
		}
		c.out = append(c.out, found.instead...)
		c.in = c.in[at+len(found.text):]
	}
}

// next finds the first needle in in, the longest of those that start there; nil: none, and the end of in.
func (c *redactor) next() (int, *needle) {
	at, found := len(c.in), (*needle)(nil)
	for i := range c.needles {
		n := &c.needles[i]
		window := c.in[:min(len(c.in), at+len(n.text))] // later ones do not matter
		if j := bytes.Index(window, n.text); j >= 0 && (found == nil || j < at) {
			at, found = j, n
		}
	}
	return at, found
}

// begun is where the first needle starts that may continue in the next read; the end of in if none does.
func (c *redactor) begun() int {
	at := len(c.in)
	for _, n := range c.needles {
		for j := max(0, len(c.in)-len(n.text)+1); j < at; j++ {
			if bytes.HasPrefix(n.text, c.in[j:]) {
				at = j
				break
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
