package markdown

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean removes terminal control from a text: whole escape sequences, control characters except \n and \t, marks that
// reorder text, and bytes that are not UTF-8 (which become U+FFFD). Everything else stays byte for byte.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0x1b || r == 0x9b || r == 0x9d || r == 0x90:
			i += escapeLen(s[i:], r, n)
			continue
		case r == utf8.RuneError && n == 1:
			out.WriteRune(utf8.RuneError)
		case !hidden(r):
			out.WriteString(s[i : i+n])
		}
		i += n
	}
	return out.String()
}

func isClean(s string) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < 0x20 && c != '\n' && c != '\t' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if hidden(r) || r == utf8.RuneError && n == 1 {
			return false
		}
		i += n
	}
	return true
}

// Visible is for text that a person decides on: nothing is removed; every character that a terminal would obey or hide is escaped instead.
func Visible(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case r != '\n' && r != '\t' && (unicode.IsControl(r) && r < 0x100):
			fmt.Fprintf(&out, `\x%02x`, r)
		case hidden(r) || r == 0xad || unicode.Is(unicode.Cf, r) && r != 0x200d:
			fmt.Fprintf(&out, `\u{%x}`, r)
		default:
			out.WriteString(s[i : i+n])
		}
		i += n
	}
	return out.String()
}

// hidden are the characters of a model that never reach a terminal.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true // they reorder text
	case r == 0x2028 || r == 0x2029 || r == 0xfeff:
		return true // line separators, byte order mark
	case r >= 0xe0000 && r <= 0xe007f:
		return true // tags: invisible text
	}
	return false
}

// escapeLen is the length of the escape sequence at the start of s. Of an unterminated string sequence (title, link),
// only the introducer is cut, so that it cannot swallow an answer.
func escapeLen(s string, first rune, n int) int {
	kind := first
	if first == 0x1b {
		if len(s) < 2 {
			return 1
		}
		n = 2
		switch s[1] {
		case '[':
			kind = 0x9b
		case ']', 'P', 'X', '^', '_':
			kind = 0x9d
		default:
			if s[1] >= 0x20 && s[1] < 0x30 && len(s) > 2 && s[2] < utf8.RuneSelf {
				return 3 // a charset or similar
			}
			if s[1] >= 0x30 && s[1] < 0x7f {
				return 2
			}
			return 1
		}
	}
	if kind == 0x9b {
		i := n
		for i < len(s) && s[i] >= 0x20 && s[i] < 0x40 {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] < 0x7f {
			return i + 1
		}
		return i
	}
	const longest = 4096 // no real title or link is longer
	for i := n; i < len(s) && i < longest; i++ {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case s[i] == '\n':
			return n
		}
	}
	return n
}

// tabStop is narrow because terminals are, and code is indented by tabs.
const tabStop = 4

func expandTabs(s string) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var out strings.Builder
	column := 0
	for i, part := range strings.Split(s, "\t") {
		if i > 0 {
			n := tabStop - column%tabStop
			out.WriteString(strings.Repeat(" ", n))
			column += n
		}
		out.WriteString(part)
		column += Width(part)
	}
	return out.String()
}
