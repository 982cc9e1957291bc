package split

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Length counts like the strictest platform, in UTF-16 units, so that a
// text that fits here fits however the platform counts.
func Length(s string) int {
	n := 0
	for _, r := range s {
		n += units(r)
	}
	return n
}

func units(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// within returns the length in bytes of the longest prefix of s with at most limit units.
func within(s string, limit int) int {
	n := 0
	for i, r := range s {
		if n += units(r); n > limit {
			return i
		}
	}
	return len(s)
}

// whole moves a cut back to a place where it breaks no combined character, or returns 0 if there is none.
func whole(s string, at int) int {
	for at > 0 && !between(s, at) {
		at--
	}
	return at
}

const joiner = '\u200d' // glues emoji together

// between reports whether the offset is between two characters as a reader sees them.
func between(s string, at int) bool {
	if at <= 0 || at >= len(s) {
		return true
	}
	if !utf8.RuneStart(s[at]) && utf8.ValidString(around(s, at)) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at:])
	switch {
	case before == '\r' && after == '\n', before == joiner, after == joiner, follows(after):
		return false
	case flag(before) && flag(after):
		return flagsBefore(s[:at])%2 == 0
	case jamo(before) && jamo(after):
		return false
	}
	return true
}

// around returns the few bytes that a broken character would span.
func around(s string, at int) string {
	from := at
	for from > 0 && at-from < utf8.UTFMax && !utf8.RuneStart(s[from]) {
		from--
	}
	_, n := utf8.DecodeRuneInString(s[from:])
	if from+n <= at {
		return "\xff" // these bytes are not a valid character anyway
	}
	return s[from : from+n]
}

// follows reports whether a rune belongs to the preceding character: marks, skin tones and tags.
func follows(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) || r >= 0x1F3FB && r <= 0x1F3FF || r >= 0xE0020 && r <= 0xE007F
}

func flag(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

func jamo(r rune) bool { return r >= 0x1100 && r <= 0x11FF }

// flagsBefore counts the regional letters at the end; each pair is a flag.
func flagsBefore(s string) int {
	return (len(s) - len(strings.TrimRightFunc(s, flag))) / 4
}
