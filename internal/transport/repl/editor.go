package repl

import (
	"fmt"
	"strings"
	"unicode"

	"chorus/internal/markdown"
	"chorus/internal/text"
)

// editor is the input box: text of any length, a cursor, and earlier
// input. A large paste is shown as one mark and sent in full.
type editor struct {
	text   []rune
	cursor int
	pastes []string // the text behind the marks

	past  []string // earlier inputs, oldest first
	at    int      // the input being shown; len(past) for the draft
	draft string
}

// Marks for pastes are from a private plane that nobody types.
const firstMark, lastMark = 0xf0000, 0xfffff

// A larger paste would push everything else off the screen.
const (
	bigPasteLines = 8
	bigPasteBytes = 1000
)

func newEditor(past []string) editor {
	return editor{past: past, at: len(past)}
}

func (e *editor) empty() bool { return len(e.text) == 0 }

// value is the text with the pastes in place of their marks.
func (e *editor) value() string {
	var out strings.Builder
	for _, r := range e.text {
		if text, ok := e.paste(r); ok {
			out.WriteString(text)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func (e *editor) paste(r rune) (string, bool) {
	if i := int(r) - firstMark; r >= firstMark && r <= lastMark && i < len(e.pastes) {
		return e.pastes[i], true
	}
	return "", false
}

// set replaces the text. A large text from the history is shown as a paste.
func (e *editor) set(text string) {
	e.text, e.pastes, e.cursor = nil, nil, 0
	e.insertPaste(text)
}

// insert inserts typed text at the cursor, without control sequences.
func (e *editor) insert(text string) {
	var typed []rune
	for _, r := range markdown.Clean(text) {
		if r < firstMark {
			typed = append(typed, r)
		}
	}
	e.splice(e.cursor, e.cursor, typed)
	e.cursor += len(typed)
}

// insertPaste inserts pasted text at the cursor.
func (e *editor) insertPaste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	text = markdown.Clean(text)
	if strings.Count(text, "\n") < bigPasteLines && len(text) < bigPasteBytes || len(e.pastes) > lastMark-firstMark {
		e.insert(text)
		return
	}
	e.pastes = append(e.pastes, text)
	e.splice(e.cursor, e.cursor, []rune{rune(firstMark + len(e.pastes) - 1)})
	e.cursor++
}

func (e *editor) splice(from, to int, with []rune) {
	tail := append([]rune(nil), e.text[to:]...)
	e.text = append(append(e.text[:from:from], with...), tail...)
}

// remove removes the text between the cursor and to.
func (e *editor) remove(to int) {
	to = min(max(to, 0), len(e.text))
	from := e.cursor
	if from > to {
		from, to = to, from
	}
	e.splice(from, to, nil)
	e.cursor = from
}

func (e *editor) wordLeft() int {
	i := e.cursor
	for i > 0 && unicode.IsSpace(e.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(e.text[i-1]) {
		i--
	}
	return i
}

func (e *editor) wordRight() int {
	i := e.cursor
	for i < len(e.text) && unicode.IsSpace(e.text[i]) {
		i++
	}
	for i < len(e.text) && !unicode.IsSpace(e.text[i]) {
		i++
	}
	return i
}

func (e *editor) lineStart() int {
	i := e.cursor
	for i > 0 && e.text[i-1] != '\n' {
		i--
	}
	return i
}

func (e *editor) lineEnd() int {
	i := e.cursor
	for i < len(e.text) && e.text[i] != '\n' {
		i++
	}
	return i
}

// key applies a key to the text and reports whether it did anything.
func (e *editor) key(name string) bool {
	switch name {
	case "left", "ctrl+b":
		e.cursor = max(e.cursor-1, 0)
	case "right", "ctrl+f":
		e.cursor = min(e.cursor+1, len(e.text))
	case "ctrl+left", "alt+left", "alt+b":
		e.cursor = e.wordLeft()
	case "ctrl+right", "alt+right", "alt+f":
		e.cursor = e.wordRight()
	case "home", "ctrl+a":
		e.cursor = e.lineStart()
	case "end", "ctrl+e":
		e.cursor = e.lineEnd()
	case "backspace", "ctrl+h", "shift+backspace":
		e.remove(e.cursor - 1)
	case "delete":
		e.remove(e.cursor + 1)
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.remove(e.wordLeft())
	case "alt+d", "ctrl+delete", "alt+delete":
		e.remove(e.wordRight())
	case "ctrl+u":
		e.remove(e.lineStart())
	case "ctrl+k":
		e.remove(e.lineEnd())
	case "alt+enter", "shift+enter", "ctrl+j", "ctrl+enter":
		e.insert("\n")
	default:
		return false
	}
	return true
}

// vertical moves the cursor up or down one displayed line, or through earlier input
// if there is no such line.
func (e *editor) vertical(by, width int) {
	rows, _, y := e.layout(width)
	if target := y + by; target >= 0 && target < len(rows) {
		e.cursor = e.place(width, target)
		return
	}
	next := e.at + by
	if next < 0 || next > len(e.past) {
		return
	}
	if e.at == len(e.past) {
		e.draft = e.value()
	}
	e.at = next
	if next == len(e.past) {
		e.set(e.draft)
	} else {
		e.set(e.past[next])
	}
}

// place finds the position in row y that is nearest to the cursor's column.
func (e *editor) place(width, y int) int {
	_, at := e.positions(width)
	x, best := at[e.cursor].x, 0
	for i, p := range at {
		if p.y == y && p.x <= x {
			best = i
		}
	}
	return best
}

// take empties the box and remembers its text.
func (e *editor) take() string {
	text := e.value()
	if strings.TrimSpace(text) != "" && (len(e.past) == 0 || e.past[len(e.past)-1] != text) {
		e.past = append(e.past, text)
	}
	e.at, e.draft = len(e.past), ""
	e.set("")
	return text
}

// layout breaks the text into rows of at most width columns and returns the
// position of the cursor.
func (e *editor) layout(width int) (rows []string, x, y int) {
	rows, at := e.positions(width)
	return rows, at[e.cursor].x, at[e.cursor].y
}

type position struct{ x, y int }

// positions is layout for every possible cursor position, including the end.
func (e *editor) positions(width int) (rows []string, at []position) {
	width = max(width, 2)
	at = make([]position, 0, len(e.text)+1)
	var row strings.Builder
	col := 0
	flush := func() {
		rows = append(rows, row.String())
		row.Reset()
		col = 0
	}
	for _, r := range e.text {
		shown := string(r)
		if pasted, ok := e.paste(r); ok {
			shown = fmt.Sprintf("[pasted %s]", text.Count(strings.Count(strings.TrimSuffix(pasted, "\n"), "\n")+1, "line"))
			shown = markdown.Truncate(shown, width)
		} else if r == '\t' {
			shown = "    "[:min(4, width)]
		}
		w := markdown.Width(shown)
		if r != '\n' && col+w > width {
			flush()
		}
		at = append(at, position{col, len(rows)})
		if r == '\n' {
			flush()
			continue
		}
		row.WriteString(shown)
		col += w
	}
	if col >= width {
		flush()
	}
	at = append(at, position{col, len(rows)})
	return append(rows, row.String()), at
}
