package markdown

import (
	"strings"
	"unicode/utf8"
)

// chatTable is the maximum width of a table in a code block: about what a phone shows on a line without wrapping.
const chatTable = 42

// ForChats converts Markdown that chat platforms do not show: small tables to aligned text, large ones to lists,
// headings below the third level to bold lines, task boxes to signs, rules to lines. Code blocks and everything else are
// unchanged.
func ForChats(text string) string {
	if !strings.ContainsAny(text, "|#[-*_") {
		return text
	}
	lines := strings.Split(text, "\n")
	out := make([]string, 0, len(lines))
	inCode, blank := false, true
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.Count(line, "```")%2 == 1:
			inCode = !inCode
			out = append(out, line)
		case inCode || strings.Contains(line, "```"):
			out = append(out, line)
		case i+1 < len(lines) && strings.Contains(line, "|") && isDelimiterRow(lines[i+1]) && len(splitRow(line)) == len(splitRow(lines[i+1])):
			end := i + 2
			for end < len(lines) && strings.Contains(lines[end], "|") && !strings.Contains(lines[end], "```") {
				end++
			}
			out = append(out, chatRows(lines[i:end])...)
			i = end - 1
		case blank && isRule(strings.TrimSpace(line)):
			out = append(out, "───")
		default:
			out = append(out, chatLine(line))
		}
		blank = strings.TrimSpace(line) == ""
	}
	return strings.Join(out, "\n")
}

// chatLine converts a line outside tables.
func chatLine(line string) string {
	body := strings.TrimLeft(line, " ")
	pad := line[:len(line)-len(body)]
	if title := strings.TrimLeft(body, "#"); len(pad) < 4 && strings.HasPrefix(body, "####") && len(body)-len(title) <= 6 && strings.HasPrefix(title, " ") {
		return pad + bold(strings.TrimSpace(strings.TrimRight(title, "# ")))
	}
	for _, box := range [...][2]string{{"[ ] ", "☐ "}, {"[x] ", "☑ "}, {"[X] ", "☑ "}} {
		for _, bullet := range [...]string{"- ", "* ", "+ "} {
			if rest, ok := strings.CutPrefix(body, bullet+box[0]); ok {
				return pad + bullet + box[1] + rest
			}
		}
	}
	return line
}

// chatRows converts the rows of a table (head, delimiter, body).
func chatRows(rows []string) []string {
	align := splitRow(rows[1])
	columns := min(len(align), maxColumns)
	cells := make([][]string, 0, len(rows)-1)
	for i, row := range rows {
		if i == 1 {
			continue
		}
		line := make([]string, columns)
		for c, cell := range splitRow(row) {
			if c < columns {
				line[c] = strings.ReplaceAll(breakTags.Replace(cell), "\n", " · ")
			}
		}
		cells = append(cells, line)
	}
	if drawn, ok := alignedRows(cells, align); ok {
		return drawn
	}
	return listedRows(cells)
}

// alignedRows formats a table as text in a code block. It is not ok if it is too wide, or if it contains something that
// would not work in a code block: a link, a mention.
func alignedRows(cells [][]string, align []string) (out []string, ok bool) {
	marks := strings.NewReplacer("**", "", "`", "")
	widths := make([]int, len(cells[0]))
	plain := make([][]string, len(cells))
	for i, cellsOf := range cells {
		row := make([]string, len(cellsOf))
		plain[i] = row
		for c, cell := range cellsOf {
			if strings.Contains(cell, "](") || strings.Contains(cell, "://") || strings.ContainsAny(cell, "@<") {
				return nil, false
			}
			row[c] = marks.Replace(cell)
			if row[c] == "" && cell != "" {
				row[c] = cell // only marks
			}
			if strings.Contains(row[c], "```") {
				return nil, false
			}
			widths[c] = max(widths[c], Width(row[c]))
		}
	}
	whole := 2 * (len(widths) - 1)
	for _, w := range widths {
		whole += w
	}
	if whole > chatTable {
		return nil, false
	}
	out = append(out, "```")
	for i, row := range plain {
		line := make([]string, len(row))
		for c, cell := range row {
			space := widths[c] - Width(cell)
			left := 0
			if strings.HasSuffix(align[c], ":") {
				left = space
				if strings.HasPrefix(align[c], ":") {
					left = space / 2
				}
			}
			line[c] = strings.Repeat(" ", left) + cell + strings.Repeat(" ", space-left)
		}
		out = append(out, strings.TrimRight(strings.Join(line, "  "), " "))
		if i == 0 {
			for c, w := range widths {
				line[c] = strings.Repeat("─", w)
			}
			out = append(out, strings.Join(line, "  "))
		}
	}
	return append(out, "```"), true
}

// listedRows formats a table as a list: two columns become a line per row, otherwise a name with its other cells.
func listedRows(cells [][]string) (out []string) {
	head := cells[0]
	if len(head) == 2 && head[0] != "" && head[1] != "" {
		out = append(out, "-# "+head[0]+": "+head[1])
	}
	for _, row := range cells[1:] {
		switch {
		case strings.Join(row, "") == "":
			continue
		case len(row) == 1:
			out = append(out, "- "+row[0])
			continue
		case len(row) == 2:
			out = append(out, strings.TrimSuffix("- "+bold(row[0])+": "+row[1], ": "))
			continue
		}
		out = append(out, bold(row[0]))
		for c, cell := range row[1:] {
			switch name := head[c+1]; {
			case cell == "":
			case name == "":
				out = append(out, "- "+cell)
			default:
				out = append(out, "- "+name+": "+cell)
			}
		}
	}
	return out
}

// bold makes a text bold unless it is already marked; an empty one becomes a dash.
func bold(text string) string {
	if text == "" {
		return "–"
	}
	if last, _ := utf8.DecodeLastRuneInString(text); strings.Contains(text, "**") || last == '\\' {
		return text
	}
	return "**" + text + "**"
}
