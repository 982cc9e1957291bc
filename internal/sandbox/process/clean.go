package process

import "unicode/utf8"

// cleaner turns what programs print for a terminal into plain text. It removes escape sequences, control
// characters and invisible formatting, turns every line ending into a newline and invalid UTF-8 into U+FFFD.
// The result does not depend on how the input is cut into pieces. The zero value is ready to use.
type cleaner struct {
	state   state
	afterCR bool   // a newline for a preceding carriage return was already written
	length  int    // of the escape sequence so far
	partial []byte // the start of an incomplete character
}

type state uint8

const (
	ground       state = iota
	escape             // after ESC
	intermediate       // after ESC and one of ' ' to '/': one more of those, or the end
	control            // CSI: until its final byte
	text               // OSC, DCS and the like: until BEL or ESC \
	textEscape         // ESC inside of those
)

// maxSequence ends an unterminated sequence: a program that died
// inside one must not swallow everything after it.
const maxSequence = 4096

// clean appends the cleaned form of p to dst.
func (c *cleaner) clean(dst, p []byte) []byte {
	if len(c.partial) > 0 {
		p = append(c.partial, p...)
		c.partial = nil
	}
	for len(p) > 0 {
		if c.state == ground && !c.afterCR {
			n := plainRun(p)
			dst = append(dst, p[:n]...)
			if p = p[n:]; len(p) == 0 {
				break
			}
		}
		if !utf8.FullRune(p) {
			c.partial = append([]byte(nil), p...)
			break
		}
		r, size := utf8.DecodeRune(p)
		dst = c.step(dst, r)
		p = p[size:]
	}
	return dst
}

// flush appends what was held back at the end of the input.
func (c *cleaner) flush(dst []byte) []byte {
	for range c.partial {
		dst = c.step(dst, utf8.RuneError)
	}
	*c = cleaner{}
	return dst
}

// plainRun returns how many leading bytes can be copied unchanged.
func plainRun(p []byte) int {
	for i, b := range p {
		if (b < 0x20 && b != '\n' && b != '\t') || b >= 0x7f {
			return i
		}
	}
	return len(p)
}

func (c *cleaner) step(dst []byte, r rune) []byte {
	if c.state != ground {
		if c.length++; c.sequence(r) {
			return dst
		}
		c.state = ground // not part of a sequence after all: r is text
	}
	afterCR := c.afterCR
	c.afterCR = false
	switch {
	case r == '\n':
		if afterCR {
			return dst
		}
	case r == '\r':
		c.afterCR = true
		r = '\n'
	case r == 0x1b:
		c.state, c.length = escape, 0
		return dst
	case hidden(r):
		return dst
	}
	return utf8.AppendRune(dst, r)
}

// sequence takes r as the next character of an escape sequence and reports whether it belongs to it.
func (c *cleaner) sequence(r rune) bool {
	if c.length > maxSequence {
		return false
	}
	if c.state != text && c.state != textEscape && (r < 0x20 || r > 0x7e) {
		return false
	}
	switch c.state {
	case escape:
		switch {
		case r == '[':
			c.state = control
		case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
			c.state = text
		case r <= 0x2f:
			c.state = intermediate
		default:
			c.state = ground
		}
	case intermediate:
		if r > 0x2f {
			c.state = ground
		}
	case control:
		if r >= 0x40 {
			c.state = ground
		}
	case text:
		switch r {
		case 0x07:
			c.state = ground
		case 0x1b:
			c.state = textEscape
		case '\n', '\r':
			return false // a terminal would show the line, so the sequence was unterminated
		}
	case textEscape:
		if r == '\\' {
			c.state = ground
			return true
		}
		c.state = escape
		return c.sequence(r)
	}
	return true
}

// hidden reports whether a character is invisible to people but affects programs: control
// characters, zero-width and direction marks, byte order marks, tags.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r < 0x061c:
		return false
	}
	return r == 0x061c || r == 0x180e || r == 0xfeff ||
		r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e ||
		r >= 0x2060 && r <= 0x206f || r >= 0xfff9 && r <= 0xfffb ||
		r >= 0xe0000 && r <= 0xe007f
}

// Cleaner makes output fit to show and store: valid UTF-8, no escape sequences, no control
// characters except newline and tab. It reassembles what was cut in two.
type Cleaner struct{ c cleaner }

// Clean appends the cleaned form of p to dst.
func (c *Cleaner) Clean(dst, p []byte) []byte { return c.c.clean(dst, p) }

// Flush appends what was held back at the end.
func (c *Cleaner) Flush(dst []byte) []byte { return c.c.flush(dst) }
