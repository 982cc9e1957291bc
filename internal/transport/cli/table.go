package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"chorus/internal/markdown"
	"chorus/internal/operation"
	"chorus/internal/text"
)

// Lengths of ids on a terminal. The first ten letters are the millisecond of creation, so twelve identify an id in practice.
const (
	idLength  = 26
	shortID   = 12
	leastID   = 6 // shorter words are not taken for the start of an id
	leastCell = 6 // minimum width of a column
	leastHead = 11
	gap       = 2 // between columns
)

// Columns writes lines of tab-separated cells, as text/tabwriter does. On a terminal they fit its width: ids are shortened to
// unique prefixes and long cells are cut, the widest column first.
type Columns struct {
	w     io.Writer
	width int
	text  bytes.Buffer
}

// NewColumns writes to w. width is the terminal's; 0: not a terminal, and nothing is cut.
func NewColumns(w io.Writer, width int) *Columns { return &Columns{w: w, width: width} }

func (c *Columns) Write(p []byte) (int, error) { return c.text.Write(p) }

// Flush writes the lines since the last Flush as one table.
func (c *Columns) Flush() error {
	defer c.text.Reset()
	if c.width <= 0 {
		w := tabwriter.NewWriter(c.w, 0, 4, gap, ' ', 0)
		if _, err := w.Write(c.text.Bytes()); err != nil {
			return err
		}
		return w.Flush()
	}
	var rows [][]string
	for line := range strings.SplitSeq(strings.TrimSuffix(c.text.String(), "\n"), "\n") {
		rows = append(rows, strings.Split(line, "\t"))
	}
	uncut := shortenIDs(rows)
	widths := natural(rows)
	if total(widths) > c.width-1 {
		shortenTimes(rows, uncut)
		rows, uncut = withoutEmpty(rows, uncut)
		rows, uncut = withoutLast(rows, uncut, c.width-1)
		widths = natural(rows)
		fit(widths, least(rows, uncut), c.width-1)
	}
	for _, row := range rows {
		if _, err := fmt.Fprintln(c.w, strings.TrimRight(layOut(row, widths), " ")); err != nil {
			return err
		}
	}
	return nil
}

// layOut pads and cuts the cells of a row. A row with one cell is a remark and is not changed.
func layOut(row []string, widths []int) string {
	if len(row) == 1 {
		return row[0]
	}
	var out strings.Builder
	for i, cell := range row {
		if markdown.Width(cell) > widths[i] {
			cell = markdown.Truncate(cell, widths[i])
		}
		out.WriteString(cell + strings.Repeat(" ", max(widths[i]-markdown.Width(cell), 0)+gap))
	}
	return out.String()
}

// natural is the full width of each column.
func natural(rows [][]string) (widths []int) {
	for _, row := range rows {
		for i, cell := range row {
			if len(row) == 1 {
				continue
			}
			for len(widths) <= i {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], markdown.Width(cell))
		}
	}
	return widths
}

func total(widths []int) int {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// least is the minimum width of each column, in two steps. In the first step heads are not cut. Columns of ids and times are never cut, because
// half of one is useless.
func least(rows [][]string, uncut []bool) (limits [2][]int) {
	for i, head := range rows[0] {
		whole := max(min(markdown.Width(head), leastHead), leastCell)
		worst := leastCell
		if uncut[i] {
			whole, worst = idLength, idLength
		}
		limits[0], limits[1] = append(limits[0], whole), append(limits[1], worst)
	}
	return limits
}

// fit narrows columns until they fit into room, the widest one first. The first column holds names: it is cut if it takes more than half of the
// room, then before the heads of others are cut, and further only at last.
func fit(widths []int, limits [2][]int, room int) {
	for _, step := range []struct{ first, others int }{{room / 2, 0}, {room / 3, 0}, {room / 3, 1}, {leastCell, 1}} {
		for total(widths) > room {
			widest := -1
			for i, w := range widths {
				least := leastCell
				if i < len(limits[step.others]) {
					least = limits[step.others][i]
				}
				if i == 0 {
					least = max(least, step.first)
				}
				if w > least && (widest < 0 || w > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break // a very narrow terminal wraps
			}
			widths[widest]--
		}
	}
}

// withoutEmpty drops columns that have only a head.
func withoutEmpty(rows [][]string, uncut []bool) ([][]string, []bool) {
	full := make([]bool, len(uncut))
	for i, row := range rows {
		for column, cell := range row {
			full[column] = full[column] || i > 0 && len(row) > 1 && strings.Trim(cell, "-– ") != ""
		}
	}
	full[0] = true
	keep := func(row []string) (out []string) {
		for column, cell := range row {
			if full[column] {
				out = append(out, cell)
			}
		}
		return out
	}
	var kept []bool
	for column, is := range uncut {
		if full[column] {
			kept = append(kept, is)
		}
	}
	out := make([][]string, len(rows))
	for i, row := range rows {
		out[i] = row
		if len(row) > 1 {
			out[i] = keep(row)
		}
	}
	return out, kept
}

// withoutLast drops the last columns until the others have room below their heads, because wrapped rows are unreadable.
func withoutLast(rows [][]string, uncut []bool, room int) ([][]string, []bool) {
	keep := len(rows[0])
	for ; keep > 2; keep-- {
		widths, limits := natural(rows)[:keep], least(rows, uncut)[0]
		for i := range widths {
			widths[i] = min(widths[i], limits[i])
		}
		if total(widths) <= room {
			break
		}
	}
	out := make([][]string, len(rows))
	for i, row := range rows {
		out[i] = row[:min(len(row), keep)]
	}
	return out, uncut[:min(len(uncut), keep)]
}

// shortenTimes removes the year and the seconds from times, and reports which columns contain times: these are not cut.
func shortenTimes(rows [][]string, whole []bool) {
	for _, row := range rows {
		for i, cell := range row {
			for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05"} {
				if at, err := time.Parse(layout, cell); err == nil {
					row[i], whole[i] = at.Format("01-02 15:04"), true
				}
			}
			if _, err := time.Parse("2006-01-02", cell); err == nil {
				whole[i] = true
			}
		}
	}
}

// shortenIDs cuts the ids of a column to distinct prefixes, and reports which columns contain ids.
func shortenIDs(rows [][]string) (ids []bool) {
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	ids = make([]bool, columns)
	for column := range columns {
		var at []int
		for i, row := range rows {
			if column < len(row) && len(row) > 1 && isID(row[column]) {
				at = append(at, i)
			}
		}
		ids[column] = len(at) > 0
		n := shortID
		for n < idLength && !unique(rows, at, column, n) {
			n++
		}
		for _, i := range at {
			rows[i][column] = rows[i][column][:n]
		}
	}
	return ids
}

// unique reports whether different ids have different prefixes of n letters.
func unique(rows [][]string, at []int, column, n int) bool {
	seen := map[string]string{}
	for _, i := range at {
		id := rows[i][column]
		if have, ok := seen[id[:n]]; ok && have != id {
			return false
		}
		seen[id[:n]] = id
	}
	return true
}

// isID reports whether a cell is one of our ids: a lower-case ULID.
func isID(cell string) bool {
	return len(cell) == idLength && idLetters(cell) && (cell[0] >= '0' && cell[0] <= '7')
}

// beginsID reports whether a word could be the start of an id.
func beginsID(word string) bool {
	word = strings.ToLower(word)
	return len(word) >= leastID && len(word) < idLength && idLetters(word) && word[0] >= '0' && word[0] <= '7'
}

func idLetters(s string) bool {
	return strings.Trim(s, "0123456789abcdefghjkmnpqrstvwxyz") == ""
}

// Details writes names and values, one per line. On a terminal long values are wrapped under themselves. Nothing is cut.
func (v View) Details(rows [][2]string) error {
	widest := 0
	for _, row := range rows {
		widest = max(widest, markdown.Width(row[0]))
	}
	room := 0
	if v.Width > 0 {
		room = max(v.Width-1-widest-gap, minValue)
	}
	var out strings.Builder
	for _, row := range rows {
		if v.Width > 0 && row[1] == "" {
			continue // skip empty values
		}
		name := row[0]
		for _, line := range text.WrapWords(row[1], room, markdown.Width) {
			out.WriteString(strings.TrimRight(name+strings.Repeat(" ", widest-markdown.Width(name)+gap)+line, " ") + "\n")
			name = ""
		}
	}
	_, err := io.WriteString(v.Out, out.String())
	return err
}

// minValue is the minimum width of a value next to its name.
const minValue = 20

// WriteTable writes a table in columns that fit the view; empty is printed for a list without rows. A table without a head describes one
// thing, and nothing of it is cut.
func WriteTable(v View, t operation.Table, empty string) error {
	if len(t.Rows) == 0 {
		if empty == "" {
			return nil
		}
		_, err := fmt.Fprintln(v.Out, strings.Join(text.WrapWords(empty, v.Width-1, markdown.Width), "\n"))
		return err
	}
	columns := v.Columns()
	if t.Head == nil && v.Width > 0 && pairs(t.Rows) {
		var rows [][2]string
		for _, row := range t.Rows {
			rows = append(rows, [2]string{text.OneLine(row[0]), text.OneLine(row[1])})
		}
		return v.Details(rows)
	}
	if t.Head == nil {
		columns.width = 0
	} else {
		fmt.Fprintln(columns, strings.Join(t.Head, "\t"))
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = text.OneLine(cell) // others' text may contain control sequences
		}
		fmt.Fprintln(columns, strings.Join(cells, "\t"))
	}
	return columns.Flush()
}

// pairs reports whether each row is a name and a value.
func pairs(rows [][]string) bool {
	return !slices.ContainsFunc(rows, func(row []string) bool { return len(row) != 2 })
}

// ClipLine is a text in one line of at most n characters, without control sequences.
func ClipLine(s string, n int) string {
	s = strings.Join(strings.Fields(markdown.Clean(s)), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
