package markdown

import (
	"strings"

	"chorus/internal/theme"
)

func mayBeTable(body string) bool {
	text := strings.TrimSpace(body)
	return strings.HasPrefix(text, "|") || strings.Contains(text, " | ")
}

// isDelimiterRow recognizes |---|:--:| below a table's head.
func isDelimiterRow(body string) bool {
	cells := splitRow(body)
	if len(cells) == 0 || !strings.Contains(body, "|") {
		return false
	}
	for _, cell := range cells {
		dashes := strings.TrimSuffix(strings.TrimPrefix(cell, ":"), ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return false
		}
	}
	return true
}

// splitRow splits a row at its pipes, except escaped ones and those in code spans.
func splitRow(row string) []string {
	row = strings.TrimSpace(row)
	row = strings.TrimPrefix(row, "|")
	if strings.HasSuffix(row, "|") && !strings.HasSuffix(row, `\|`) {
		row = row[:len(row)-1]
	}
	var cells []string
	var cell strings.Builder
	inCode := false
	for i := 0; i < len(row); i++ {
		switch c := row[i]; {
		case c == '\\' && i+1 < len(row) && row[i+1] == '|':
			cell.WriteByte('|')
			i++
		case c == '`' && (inCode || strings.Contains(row[i+1:], "`")):
			inCode = !inCode
			cell.WriteByte(c)
		case c == '|' && !inCode:
			cells = append(cells, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(c)
		}
	}
	return append(cells, strings.TrimSpace(cell.String()))
}

// maxColumns limits the work for a row of nothing but pipes.
const maxColumns = 64

// drawTable draws rows (head, delimiter, body) with aligned columns.
func (r *Renderer) drawTable(depth int, rows []string) []string {
	r.inList = false
	align := splitRow(rows[1])
	columns := min(max(len(splitRow(rows[0])), len(align)), maxColumns)
	cells := make([][]string, 0, len(rows)-1)
	natural := make([]int, columns)
	for i, row := range rows {
		if i == 1 {
			continue
		}
		var st style
		if i == 0 {
			st = theme.Strong
		}
		line := make([]string, columns)
		for c, cell := range splitRow(row) {
			if c >= columns {
				break
			}
			line[c] = paint(r.look, inline(breakTags.Replace(cell), st))
			natural[c] = max(natural[c], widest(line[c]))
		}
		cells = append(cells, line)
	}
	room := r.width - 2*min(depth, 4) - 3*(columns-1)
	widths, fits := fit(natural, room)
	bar := r.quoteBar(depth)
	var out []string
	if !fits { // too many columns for this terminal: row by row, as written
		for _, row := range rows {
			out = append(out, r.lines(depth, "", 0, inline(row, 0))...)
		}
		return out
	}
	for i, line := range cells {
		out = append(out, drawRow(r.look, bar, line, widths, align)...)
		if i == 0 {
			rules := make([]string, columns)
			for c, w := range widths {
				rules[c] = strings.Repeat("─", w)
			}
			out = append(out, bar+r.look.Paint(theme.Faint, strings.Join(rules, "─┼─")))
		}
	}
	return out
}

// breakTags: models write <br> in cells, because a row is one line of source.
var breakTags = strings.NewReplacer("<br>", "\n", "<br/>", "\n", "<br />", "\n")

// widest is the width of the longest line of a drawn text.
func widest(drawn string) int {
	n := 0
	for line := range strings.SplitSeq(drawn, "\n") {
		n = max(n, Width(line))
	}
	return n
}

// fit narrows the widest columns until they fit, none below three characters; with too many columns it fails.
func fit(natural []int, room int) (widths []int, ok bool) {
	total := func(limit int) (n int) {
		for _, w := range natural {
			n += max(min(w, limit), 1)
		}
		return n
	}
	limit := 3
	for step := 1 << 16; step > 0; step >>= 1 {
		if total(limit+step) <= room {
			limit += step
		}
	}
	spare := room - total(limit)
	widths = make([]int, len(natural))
	for i, w := range natural {
		widths[i] = max(min(w, limit), 1)
		if w > limit && spare > 0 {
			widths[i]++
			spare--
		}
	}
	return widths, total(limit) <= room
}

func drawRow(look theme.Theme, bar string, row []string, widths []int, align []string) []string {
	wrapped := make([][]string, len(widths))
	height := 1
	for c, cell := range row {
		wrapped[c] = wrap(cell, widths[c])
		height = max(height, len(wrapped[c]))
	}
	out := make([]string, height)
	for y := range out {
		parts := make([]string, len(widths))
		for c := range widths {
			part := ""
			if y < len(wrapped[c]) {
				part = wrapped[c][y]
			}
			gap := max(widths[c]-Width(part), 0)
			left := 0
			if c < len(align) && strings.HasSuffix(align[c], ":") {
				left = gap
				if strings.HasPrefix(align[c], ":") {
					left = gap / 2
				}
			}
			parts[c] = strings.Repeat(" ", left) + part + strings.Repeat(" ", gap-left)
		}
		out[y] = strings.TrimRight(bar+strings.Join(parts, look.Paint(theme.Faint, " │ ")), " ")
	}
	return out
}
