package markdown

import (
	"strings"
	"unicode"

	"chorus/internal/theme"
)

// cutQuote removes the ">" marks of a line and counts them.
func cutQuote(src string) (depth int, body string) {
	body = src
	for {
		trimmed := strings.TrimLeft(body, " ")
		if len(body)-len(trimmed) > 3 || !strings.HasPrefix(trimmed, ">") {
			return depth, body
		}
		depth++
		body = strings.TrimPrefix(trimmed[1:], " ")
	}
}

// quoteBar is drawn once per depth of quoting, at most four times.
func (r *Renderer) quoteBar(depth int) string {
	return strings.Repeat(r.look.Paint(theme.Faint, "│")+" ", min(depth, 4))
}

// lines draws a text after a quote bar, with lead before the first line and the same width of spaces before the others.
func (r *Renderer) lines(depth int, lead string, leadStyle style, text []span) []string {
	bar := r.quoteBar(depth)
	room := max(r.width-2*min(depth, 4)-Width(lead), minWidth/2)
	pad := strings.Repeat(" ", Width(lead))
	var out []string
	for i, line := range wrap(paint(r.look, text), room) {
		before := pad
		if i == 0 {
			before = r.look.Paint(leadStyle, lead)
		}
		out = append(out, strings.TrimRight(bar+before+line, " "))
	}
	return out
}

// block draws one block that is neither code nor a table.
func (r *Renderer) block(depth int, body string) []string {
	text := strings.TrimLeft(body, " ")
	indent := len(body) - len(text)
	if level, title := cutHeading(text); level > 0 && indent < 4 {
		r.inList = false
		st := theme.Heading
		if level == 1 {
			st |= theme.Underline
		}
		return r.lines(depth, "", 0, inline(title, st))
	}
	if isRule(text) && indent < 4 {
		r.inList = false
		n := min(r.width-2*min(depth, 4), 40)
		return []string{r.quoteBar(depth) + r.look.Paint(theme.Faint, strings.Repeat("─", max(n, 3)))}
	}
	pad := strings.Repeat(" ", min(indent, r.width/3))
	if mark, rest, ok := cutBullet(text); ok {
		r.inList = true
		lead, leadStyle := pad+mark+" ", theme.Faint
		var st style
		if box, after, ok := cutTask(rest); ok {
			lead, rest = pad+box+" ", after
			if box == "☑" {
				leadStyle = theme.Added
			}
		}
		return r.lines(depth, lead, leadStyle, inline(rest, st))
	}
	if indent >= 4 && !r.inList {
		return r.lines(depth, pad, 0, []span{{text, theme.Code}})
	}
	if indent == 0 {
		r.inList = false
	}
	return r.lines(depth, pad, 0, inline(text, 0))
}

// startsBlock reports whether a line starts its own block, so that it cannot belong to the paragraph above.
func startsBlock(body string) bool {
	text := strings.TrimLeft(body, " ")
	level, _ := cutHeading(text)
	_, _, bullet := cutBullet(text)
	_, _, fence := cutFence(text)
	return level > 0 || bullet || fence || isRule(text)
}

func cutHeading(text string) (level int, title string) {
	for level < len(text) && text[level] == '#' {
		level++
	}
	if level == 0 || level > 6 || level < len(text) && text[level] != ' ' {
		return 0, ""
	}
	title = strings.TrimSpace(text[level:])
	if bare := strings.TrimRight(title, "#"); bare != title && (bare == "" || strings.HasSuffix(bare, " ")) {
		title = strings.TrimSpace(bare)
	}
	return level, title
}

func isRule(text string) bool {
	if text == "" || !strings.ContainsRune("-*_", rune(text[0])) {
		return false
	}
	n := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case text[0]:
			n++
		case ' ':
		default:
			return false
		}
	}
	return n >= 3
}

// cutBullet removes the mark of a list item.
func cutBullet(text string) (mark, rest string, ok bool) {
	if text == "" {
		return "", "", false
	}
	if strings.ContainsRune("-*+", rune(text[0])) && len(text) > 1 && text[1] == ' ' {
		return "•", strings.TrimLeft(text[2:], " "), true
	}
	n := 0
	for n < len(text) && n < 9 && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	if n == 0 || n+1 >= len(text) || text[n] != '.' && text[n] != ')' || text[n+1] != ' ' {
		return "", "", false
	}
	return text[:n+1], strings.TrimLeft(text[n+2:], " "), true
}

func cutTask(text string) (box, rest string, ok bool) {
	if len(text) < 4 || text[0] != '[' || text[2] != ']' || text[3] != ' ' {
		return "", "", false
	}
	switch text[1] {
	case ' ':
		return "☐", text[4:], true
	case 'x', 'X':
		return "☑", text[4:], true
	}
	return "", "", false
}

// cutFence recognizes the first line of a code block.
func cutFence(text string) (fence, info string, ok bool) {
	if text == "" || text[0] != '`' && text[0] != '~' {
		return "", "", false
	}
	n := 0
	for n < len(text) && text[n] == text[0] {
		n++
	}
	info = strings.TrimSpace(text[n:])
	if n < 3 || text[0] == '`' && strings.Contains(info, "`") {
		return "", "", false
	}
	return text[:n], info, true
}

func (r *Renderer) opensFence(body string, depth int) bool {
	text := strings.TrimLeft(body, " ")
	indent := len(body) - len(text)
	fence, info, ok := cutFence(text)
	if !ok {
		return false
	}
	r.fence, r.fenceCut, r.quoted = fence, indent, depth
	r.fencePad = r.quoteBar(depth) + strings.Repeat(" ", min(indent, r.width/3)+2)
	r.highlight = newHighlighter(languageName(info))
	return true
}

// languageName is the language at the start of a fence's info string.
func languageName(info string) string {
	if i := strings.IndexFunc(info, func(c rune) bool { return unicode.IsSpace(c) || c == '{' || c == ',' }); i >= 0 {
		return info[:i]
	}
	return info
}

// codeLine draws one line inside a code block, or closes the block.
func (r *Renderer) codeLine(src string) []string {
	depth, body := 0, src
	if r.quoted > 0 {
		depth, body = cutQuote(src)
	}
	if depth < r.quoted { // the quote ended, and with it the code
		r.fence = ""
		return r.line(src)
	}
	text := strings.TrimLeft(body, " ")
	if closing := strings.TrimRight(text, string(r.fence[0])); closing == "" && len(text) >= len(r.fence) {
		r.fence = ""
		r.drawn()
		return nil
	}
	body = body[min(len(body)-len(text), r.fenceCut):]
	if text == "" {
		r.sawBlank = false
		return []string{""}
	}
	r.drawn()
	room := max(r.width-2*min(r.quoted, 4)-min(r.fenceCut, r.width/3)-2, minWidth/2)
	var out []string
	for _, line := range wrapHard(paint(r.look, r.highlight.line(body)), room) {
		out = append(out, r.fencePad+line)
	}
	return out
}
