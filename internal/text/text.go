// Package text shortens, counts and formats texts for people. It never cuts a character in two.
package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clip returns the first n characters of a text, followed by "…" if it
// has more. The result is always valid UTF-8.
func Clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
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

// Prefix returns the longest prefix of a text that has at most n bytes and ends between two characters.
func Prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// OneLine puts a text on one line: each run of white space becomes one space, and
// control characters, which could affect a terminal, become U+FFFD.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// Thousands formats a number for people: 1,234.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Count returns a number with its noun: "1 file", "2 files".
func Count(n int, noun string) string { return CountOf(n, noun, noun+"s") }

// CountOf is Count for irregular plurals: "1 thing is", "2 things are".
func CountOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Overlap returns the length of the longest suffix of b that is a prefix of s, if b does not end
// with all of s. These bytes may be the beginning of an s that is still arriving.
func Overlap(b []byte, s string) int {
	for n := min(len(b), len(s)-1); n > 0; n-- {
		if string(b[len(b)-n:]) == s[:n] {
			return n
		}
	}
	return 0
}

// Sentence turns a clause, such as an error, into a sentence: it begins with a capital letter and ends with
// a full stop, unless it ends with another mark.
func Sentence(clause string) string {
	first, size := utf8.DecodeRuneInString(clause)
	if size == 0 {
		return ""
	}
	clause = string(unicode.ToUpper(first)) + clause[size:]
	if strings.ContainsAny(clause[len(clause)-1:], ".!?:") {
		return clause
	}
	return clause + "."
}
