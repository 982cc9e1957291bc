package text

import (
	"strings"
	"unicode"
)

// Printable returns untrusted text on one line, without control characters and with at most most characters.
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
