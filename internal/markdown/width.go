package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wide are the ranges that take two columns (East Asian Wide and Fullwidth, and
// the emoji that are drawn as pictures), in order.
var wide = [...][2]rune{
	{0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a}, {0x23e9, 0x23ec}, {0x23f0, 0x23f0}, {0x23f3, 0x23f3},
	{0x25fd, 0x25fe}, {0x2614, 0x2615}, {0x2648, 0x2653}, {0x267f, 0x267f}, {0x2693, 0x2693}, {0x26a1, 0x26a1},
	{0x26aa, 0x26ab}, {0x26bd, 0x26be}, {0x26c4, 0x26c5}, {0x26ce, 0x26ce}, {0x26d4, 0x26d4}, {0x26ea, 0x26ea},
	{0x26f2, 0x26f3}, {0x26f5, 0x26f5}, {0x26fa, 0x26fa}, {0x26fd, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b},
	{0x2728, 0x2728}, {0x274c, 0x274c}, {0x274e, 0x274e}, {0x2753, 0x2755}, {0x2757, 0x2757}, {0x2795, 0x2797},
	{0x27b0, 0x27b0}, {0x27bf, 0x27bf}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55}, {0x2e80, 0x303e},
	{0x3041, 0x33ff}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xa000, 0xa4cf}, {0xa960, 0xa97c}, {0xac00, 0xd7a3},
	{0xf900, 0xfaff}, {0xfe10, 0xfe19}, {0xfe30, 0xfe6f}, {0xff01, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18aff},
	{0x1b000, 0x1b2ff}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a},
	{0x1f1e6, 0x1f1ff}, {0x1f200, 0x1f265}, {0x1f300, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c},
	{0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4},
	{0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e},
	{0x1f550, 0x1f567}, {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f},
	{0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2}, {0x1f6d5, 0x1f6df}, {0x1f6eb, 0x1f6ec},
	{0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff},
	{0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
}

// runeWidth is how many columns a rune takes by itself: 0, 1 or 2.
func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return 0
	case r < 0x300:
		if r == 0xad {
			return 0
		}
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), r >= 0x1160 && r <= 0x11ff, r >= 0x1f3fb && r <= 0x1f3ff:
		return 0 // marks, joiners, the inner parts of Hangul, skin tones
	}
	lo, hi := 0, len(wide)
	for lo < hi {
		mid := (lo + hi) / 2
		if wide[mid][1] < r {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(wide) && r >= wide[lo][0] {
		return 2
	}
	return 1
}

// glyph is what is drawn in one place: a rune with the marks that follow it.
type glyph struct {
	text  string
	width int
	style style
	link  string // where it leads; web pages only
}

// glyphs takes a text apart so that no break falls inside a combined character.
func glyphs(s string, st style) []glyph {
	out := make([]glyph, 0, len(s))
	joined, flag := false, false
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		text := s[:n]
		s = s[n:]
		w := runeWidth(r)
		last := len(out) - 1
		regional := r >= 0x1f1e6 && r <= 0x1f1ff
		switch {
		case last >= 0 && r != '\n' && out[last].text != "\n" && (w == 0 || joined || flag && regional):
			out[last].text += text
			if r == 0xfe0f { // drawn as a picture: two columns on most terminals
				out[last].width = 2
			}
			flag = false
		default:
			out = append(out, glyph{text: text, width: w, style: st})
			flag = regional
		}
		joined = r == 0x200d
	}
	return out
}

// Width is how many columns a text without escape sequences takes.
func Width(s string) int {
	ascii := true
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7f {
			ascii = false
			break
		}
	}
	if ascii {
		return len(s)
	}
	n := 0
	for _, g := range glyphs(s, 0) {
		n += g.width
	}
	return n
}

// Truncate makes one line of a text, cleaned and at most width columns wide,
// with an ellipsis where something was cut.
func Truncate(s string, width int) string {
	s = Clean(s)
	if strings.ContainsAny(s, "\n\t") {
		s = strings.Join(strings.Fields(s), " ")
	}
	if width <= 0 {
		return ""
	}
	if Width(s) <= width {
		return s
	}
	var out strings.Builder
	n := 0
	for _, g := range glyphs(s, 0) {
		if n+g.width > width-1 {
			break
		}
		n += g.width
		out.WriteString(g.text)
	}
	return out.String() + "…"
}

// Wrap breaks a plain text (no escape sequences) into lines of at most width
// columns, at spaces where there are any. Indentation of a line is kept on the
// lines that it is broken into. Tabs become spaces.
func Wrap(s string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(Clean(s), "\n") {
		line = expandTabs(line)
		body := strings.TrimLeft(line, " ")
		pad := line[:len(line)-len(body)]
		if len(pad) > width/2 {
			pad = pad[:width/2]
		}
		for _, l := range wrap(glyphs(body, 0), width-len(pad), width-len(pad)) {
			out = append(out, pad+plain(l))
		}
	}
	return out
}

func plain(line []glyph) string {
	var out strings.Builder
	for _, g := range line {
		out.WriteString(g.text)
	}
	return out.String()
}
