package markdown

import "strings"

// style is a set of ways to draw a glyph.
type style uint16

const (
	bold style = 1 << iota
	italic
	strike
	underline
	dim
	codeSpan
	heading
	keyword
	quotedText
	comment
	added
	removed
	hunk
)

// reset ends every style.
const reset = "\x1b[0m"

// sgr lists the escape codes of each style in the order of their bits. Only the
// sixteen colours that every terminal has, so that its owner's palette rules.
var sgr = [...]string{"1", "3", "9", "4", "2", "36", "1;35", "35", "32", "2", "32", "31", "36"}

func (s style) on() string {
	var codes []string
	for i, code := range sgr {
		if s&(1<<i) != 0 {
			codes = append(codes, code)
		}
	}
	return "\x1b[" + strings.Join(codes, ";") + "m"
}

// wrap breaks glyphs into lines: the first of at most first columns, the others
// of at most rest. A newline glyph breaks always. The space at a break is dropped.
func wrap(gs []glyph, first, rest int) [][]glyph {
	first, rest = max(first, 1), max(rest, 1)
	var lines [][]glyph
	limit := first
	start, width := 0, 0
	space, spaceAt := -1, 0 // last place to break in this line, and the width after it
	flush := func(end, next int) {
		lines = append(lines, gs[start:end])
		start, limit, space = next, rest, -1
	}
glyphs:
	for i, g := range gs {
		if g.text == "\n" {
			flush(i, i+1)
			width = 0
			continue
		}
		for width+g.width > limit && i > start {
			switch {
			case g.text == " ":
				flush(i, i+1)
				width = 0
				continue glyphs
			case space > start && gs[space].text == " ":
				flush(space, space+1)
				width -= spaceAt
			case space > start: // between two wide characters
				flush(space, space)
				width -= spaceAt
			default:
				flush(i, i)
				width = 0
			}
		}
		width += g.width
		switch {
		case g.text == " ":
			space, spaceAt = i, width
		case g.width == 2 && i+1 < len(gs) && gs[i+1].width == 2:
			space, spaceAt = i+1, width
		}
	}
	return append(lines, gs[start:])
}

// paint draws one line of glyphs, styles included.
func paint(line []glyph) string {
	var out strings.Builder
	var now style
	for _, g := range line {
		if g.style != now {
			if now != 0 {
				out.WriteString(reset)
			}
			if g.style != 0 {
				out.WriteString(g.style.on())
			}
			now = g.style
		}
		out.WriteString(g.text)
	}
	if now != 0 {
		out.WriteString(reset)
	}
	return out.String()
}

func styled(s string, st style) string {
	if s == "" || st == 0 {
		return s
	}
	return st.on() + s + reset
}
