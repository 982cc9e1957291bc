package text

import (
	"strings"
	"unicode"
)

// Printable is untrusted text on one line: no control characters, and at most so many
// characters.
func Printable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return Clip(s, most)
}
