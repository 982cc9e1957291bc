package repl

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/approval"
	"chorus/internal/markdown"
	"chorus/internal/text"
	"chorus/internal/theme"
)

// promptMark precedes the first row of the input; the others are indented.
const promptMark = "❯ "

// ruleWidth is small, because a terminal that is made narrower breaks long lines and
// leaves their pieces behind.
const ruleWidth = 40

func (w *window) inputWidth() int { return max(w.width-4, 4) }

// View draws the window, never lower than the one on the screen (see shrink).
func (w *window) View() tea.View {
	lines := w.lines()
	pad := max(w.drawn-len(lines), 0)
	v := tea.NewView(strings.Repeat("\n", pad) + strings.Join(lines, "\n"))
	v.WindowTitle = w.title()
	if x, y, ok := w.cursor(); ok {
		v.Cursor = tea.NewCursor(x, y+pad)
		v.Cursor.Blink = false
	}
	return v
}

// title is the title of the terminal's window or tab. It starts with whether somebody is needed.
func (w *window) title() string {
	state := ""
	switch {
	case w.leaving:
		return ""
	case w.card != nil:
		state = "waiting for you"
	case w.presenter.run != "":
		state = "works"
	}
	dir := ""
	if info := w.s.Info(); info.Dir != "" {
		dir = markdown.Truncate(visibleLine(filepath.Base(info.Dir)), 40)
	}
	return joinParts([]string{state, "chorus", dir})
}

func (w *window) lines() []string {
	if w.leaving {
		return []string{" "} // the renderer must have something to draw
	}
	return append(w.upper(), w.lower()...)
}

// moved reports whether the renderer has, by handling msg, just moved to the
// window's first line.
func moved(msg tea.Msg) bool {
	return reflect.TypeOf(msg) == reflect.TypeOf(tea.ClearScreen()) || reflect.TypeOf(msg) == reflect.TypeOf(tea.Println()())
}

// shrink lets the window get lower. The renderer miscounts when a window
// becomes lower while its cursor is further down, and leaves lines behind.
// So the height is kept, with blank lines on top, until the renderer has moved
// to the first line: because of something printed above, or on request.
func (w *window) shrink(msg tea.Msg) tea.Cmd {
	if moved(msg) {
		w.drawn, w.clearing = 0, false
	}
	height := len(w.lines())
	if height >= w.drawn {
		w.drawn = height
		return nil
	}
	if w.clearing || w.printing || len(w.above) > 0 {
		return nil
	}
	// The move to the first line is drawn with the next frame, but printed text goes
	// out at once: so nothing may be printed in between.
	w.clearing, w.printing = true, true
	return tea.Sequence(tea.ClearScreen, w.after(fewFrames, printedMsg{}))
}

// cursor is the position of the terminal's cursor.
func (w *window) cursor() (x, y int, ok bool) {
	if w.leaving || w.card != nil && w.answering && w.note == nil {
		return 0, 0, false
	}
	if w.search != nil {
		return markdown.Width(w.searchLines()[0]), len(w.upper()) + 1, true
	}
	rows, x, y := w.inputRows()
	return x + markdown.Width(promptMark), len(w.upper()) + 1 + y, len(rows) > 0
}

// lower is the input and the status line below it.
func (w *window) lower() []string {
	line := w.look.Paint(theme.Faint, strings.Repeat("─", min(w.room(), ruleWidth)))
	out := append([]string{line}, w.typed()...)
	return append(out, w.look.Paint(theme.Faint, markdown.Truncate(w.statusText(), w.room())))
}

// typed is the input with its completions, or the search in its place.
func (w *window) typed() []string {
	if w.search != nil {
		return w.searchLines()
	}
	var out []string
	rows, _, _ := w.inputRows()
	for i, row := range rows {
		mark := "  "
		if i == 0 {
			mark = w.look.Paint(theme.Accent, promptMark)
		}
		out = append(out, mark+row)
	}
	return append(out, w.menuLines()...)
}

// inputRows are the visible rows of the input, around the cursor.
func (w *window) inputRows() (rows []string, x, y int) {
	rows, x, y = w.box().layout(w.inputWidth())
	limit := max(w.tallest()/2, 1)
	if len(rows) > limit {
		from := min(max(y-limit+1, 0), len(rows)-limit)
		rows, y = rows[from:from+limit], y-from
	}
	return rows, x, y
}

// upper is everything above the input: the end of the answer, the current activity, who
// waits, the approval. If it does not fit, the top is cut off.
func (w *window) upper() []string {
	out := w.fold(w.md.Tail())
	if len(out) > 0 && w.presenter.run != "" {
		out = append(out, "")
	}
	out = append(out, w.busy()...)
	for i, seq := range w.presenter.order {
		if w.reading() {
			break // it may have been answered
		}
		if i == 3 {
			out = append(out, w.look.Paint(theme.Faint, "  and "+text.Count(len(w.presenter.order)-3, "more prompt")))
			break
		}
		out = append(out, w.look.Paint(theme.Faint, markdown.Truncate("  waiting: "+w.presenter.prompts[seq].text, w.room())))
	}
	if w.card != nil {
		out = append(out, w.approval()...)
	}
	if w.flash != "" {
		out = append(out, w.look.Paint(theme.Warn, markdown.Truncate(w.flash, w.room())))
	}
	if room := max(w.tallest()-2-len(w.typed()), 0); len(out) > room {
		out = out[len(out)-room:]
	}
	return out
}

// busy is the line with the spinner and the tool's last output.
func (w *window) busy() []string {
	what, since := w.presenter.doing()
	if what == "" {
		return nil
	}
	if w.stopping {
		what = "stopping: " + what
	}
	out := []string{statusLine(w.frame, what, w.now().Sub(since), w.room(), w.look)}
	for _, line := range w.presenter.output() {
		out = append(out, w.look.Paint(theme.Faint, "  "+markdown.Truncate(line, w.room()-2)))
	}
	return out
}

func (w *window) approval() []string {
	keys := "y yes · n no · a always… · r no, with a reason · Tab to type"
	switch {
	case w.note != nil && w.form != nil:
		return w.formLines()
	case w.note != nil && approval.IsQuestion(w.card.Actions):
		keys = "your answer: Enter sends it, Esc goes back"
	case w.note != nil:
		keys = "why not? Enter denies, Esc goes back"
	case w.answering && approval.IsQuestion(w.card.Actions):
		keys = "r answer · y accept the suggestion · n decline · Tab to type"
	case w.answering && w.offer != nil && w.offer == w.offered: // not before the choices are visible
		keys = w.offerKeys()
	case !w.answering:
		keys = "an approval is pending: Tab to answer it"
	}
	return []string{w.look.Paint(theme.Warn, "└ "+markdown.Truncate(keys, w.room()-2))}
}

// statusText describes the conversation partner and the usage. If the line is too narrow, the least important parts are left out.
func (w *window) statusText() string {
	info := w.s.Info()
	mode := ""
	if info.Mode != "" {
		mode = "mode " + info.Mode
	}
	tokens := ""
	if n := w.presenter.usage.Total(); n > 0 {
		tokens = count(n) + " tokens"
	}
	parts := []string{info.Agent, info.Model, mode, info.Profile, info.Sandbox, w.presenter.contextText(info.Window), tokens, money(w.presenter.cost)}
	for _, least := range []int{6, 0, 4} { // tokens, the agent, the sandbox
		if line := joinParts(parts); markdown.Width(line) <= w.room() {
			return line
		}
		parts[least] = ""
	}
	if line := joinParts(parts); markdown.Width(line) > w.room() {
		_, name, _ := strings.Cut(info.Model, "/")
		parts[1] = cmp.Or(name, info.Model)
	}
	return joinParts(parts)
}

// contextText says how much of the model's context is used.
func (t *presenter) contextText(window int) string {
	switch used := t.context; {
	case used == 0 || window == 0:
		return ""
	case used*100 < window:
		return "context <1%"
	default:
		return fmt.Sprintf("context %d%%", min(used*100/window, 100))
	}
}

// withContext adds the context use to the answer to /status. The terminal knows it from what it was shown.
func (t *presenter) withContext(line, answer string, window int) string {
	said := t.contextText(window)
	if strings.TrimSpace(line) != "/status" || said == "" {
		return answer
	}
	return fmt.Sprintf("%s\n%-14s%s of %s tokens", strings.TrimRight(answer, "\n"), "context", strings.TrimPrefix(said, "context "), count(window))
}

func joinParts(parts []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" }), " · ")
}
