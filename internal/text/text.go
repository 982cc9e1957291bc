// Package text shortens texts for people. It promises valid results for valid texts: no
// character is cut in two.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clip is the first n characters of a text, followed by "…" if it has more.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n <= 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// Prefix is the longest beginning of a text that has at most n bytes and ends between
// two characters.
func Prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// OneLine puts a text on one line: any run of white space becomes one space, and
// control characters, which could steer a terminal, become U+FFFD.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}
