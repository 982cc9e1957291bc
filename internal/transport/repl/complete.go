package repl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/markdown"
	"chorus/internal/theme"
)

// Completion is one way to complete the input.
type Completion struct {
	Line  string // replaces what was typed; "": it cannot be chosen and only says what is expected
	Label string
	About string
}

// Completer is a session that completes commands and file names. A Session may be one.
type Completer interface {
	// Complete receives the command line typed so far, or @ and the start of a file name.
	Complete(ctx context.Context, typed string) ([]Completion, error)
}

// completeTime is how long to wait for completions; later ones are useless to somebody who types.
const completeTime = 3 * time.Second

// menuRows is how many completions are shown at once.
const menuRows = 8

// menu is the list of completions below the input.
type menu struct {
	typed  string // the text to be replaced
	list   []Completion
	at     int
	moved  bool // the person moved the mark with the arrows
	closed bool // by Esc, until something else is typed
	runs   bool // choosing runs the command at once: a picker
}

type choicesMsg struct {
	typed string
	list  []Completion
}

func (m *menu) open() bool { return len(m.list) > 0 && !m.closed }

func (m *menu) move(by int) {
	m.at, m.moved = (m.at+by+len(m.list))%len(m.list), true
}

// typedWord is the text to complete at the cursor: a command from its slash on, or a word that starts with @.
func (e *editor) typedWord() (string, bool) {
	before := e.text[:e.cursor]
	if len(before) > 0 && before[0] == '/' && !slices.Contains(before, '\n') && e.cursor == len(e.text) {
		return string(before), true
	}
	from := len(before)
	for from > 0 && !unicode.IsSpace(before[from-1]) {
		from--
	}
	word := string(before[from:])
	return word, strings.HasPrefix(word, "@")
}

// complete requests completions after something was typed.
func (w *window) complete() tea.Cmd {
	if w.stopAsking != nil {
		w.stopAsking()
		w.stopAsking = nil
	}
	runs := w.menu.runs
	w.menu = menu{}
	if w.note != nil {
		return nil
	}
	typed, ok := w.input.typedWord()
	if !strings.HasPrefix(typed, "/") {
		w.greet() // a session can no longer be chosen
	}
	if !ok {
		return nil
	}
	w.menu = menu{typed: typed, list: w.names(typed), runs: runs && strings.HasPrefix(typed, "/")}
	if name, ok := strings.CutPrefix(typed, "/"+themeCommand.Name+" "); ok {
		w.choices(choicesMsg{typed, w.themeChoices(name)})
		return nil
	}
	completer, ok := w.s.(Completer)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(w.ctx, completeTime)
	w.stopAsking = cancel
	return func() tea.Msg {
		defer cancel()
		list, err := completer.Complete(ctx, typed)
		if err != nil {
			return nil // completion is optional; errors are reported when the line is sent
		}
		return choicesMsg{typed, list}
	}
}

// names returns the commands that begin so.
func (w *window) names(typed string) (out []Completion) {
	name, ok := strings.CutPrefix(typed, "/")
	if !ok || strings.ContainsFunc(name, unicode.IsSpace) {
		return nil
	}
	for _, c := range w.all {
		if strings.HasPrefix(c.Name, strings.ToLower(name)) {
			out = append(out, Completion{Line: "/" + c.Name + " ", Label: strings.TrimSpace("/" + c.Name + " " + c.Args), About: c.About})
		}
	}
	return out
}

// choices takes the completions that the session returned.
func (w *window) choices(msg choicesMsg) {
	if msg.typed != w.menu.typed {
		return // something else was typed meanwhile
	}
	for _, c := range msg.list {
		known := func(have Completion) bool { return c.Line != "" && have.Line == c.Line }
		if markdown.Clean(c.Line) == c.Line && !strings.ContainsAny(c.Line, "\n\t") && !slices.ContainsFunc(w.menu.list, known) {
			w.menu.list = append(w.menu.list, c)
		}
	}
	if w.picksFirst && len(w.menu.list) == 0 && msg.typed == "/resume " {
		w.menu = menu{}
		w.input.set("")
		w.greet()
		w.say(theme.Faint, "", noOthers)
	}
	if w.menu.runs && !w.menu.moved { // a picker starts at the current value
		w.menu.at = max(0, slices.IndexFunc(w.menu.list, func(c Completion) bool { return strings.HasPrefix(c.About, current) }))
	}
}

// current starts the description of the current choice.
const current = "now"

// menuKey handles a key while completions are shown, and reports whether it used the key.
func (w *window) menuKey(name string) (tea.Cmd, bool) {
	if !w.menu.open() || w.note != nil {
		if name == "tab" && w.note == nil {
			return w.complete(), true
		}
		return nil, false
	}
	switch name {
	case "up", "ctrl+p":
		w.menu.move(-1)
	case "down", "ctrl+n":
		w.menu.move(1)
	case "tab":
		return w.choose(), true
	case "enter":
		switch {
		case w.menu.runs && w.menu.list[w.menu.at].Line != "":
			w.menu.runs = false
			w.choose()
			return w.enter(), true
		case w.menu.moved || w.halfName():
			return w.choose(), true
		}
		return nil, false
	case "esc":
		w.menu.closed = true
		if w.menu.runs { // the picker was the only input
			w.menu = menu{}
			w.input.set("")
			w.greet()
		}
	default:
		return nil, false
	}
	return nil, true
}

// halfName reports whether only a part of a command's name is typed.
func (w *window) halfName() bool {
	name, ok := strings.CutPrefix(w.menu.typed, "/")
	return ok && !strings.ContainsFunc(name, unicode.IsSpace) && w.menu.list[w.menu.at].Line != "" && !known(strings.ToLower(name), w.all) &&
		!slices.ContainsFunc(w.menu.list, func(c Completion) bool { return c.Line == w.menu.typed+" " })
}

// choose puts the marked completion into the input, and requests completions for that.
func (w *window) choose() tea.Cmd {
	c := w.menu.list[w.menu.at]
	if c.Line == "" {
		return nil
	}
	w.input.remove(w.input.cursor - len([]rune(w.menu.typed)))
	w.input.insert(c.Line)
	return w.complete()
}

// picks reports whether a command without arguments opens a picker.
func (w *window) picks(name string) bool {
	_, ok := w.s.(Completer)
	return name == themeCommand.Name || ok && (name == "model" || name == "resume" || name == "mode")
}

// pick opens a command's picker; Enter runs the command with the choice.
func (w *window) pick(name string) tea.Cmd {
	w.input.set("/" + name + " ")
	w.menu = menu{runs: true}
	return w.complete()
}

// alike reports whether two names look the same when cut to so many columns.
func (m *menu) alike(column int) bool {
	seen := make(map[string]bool, len(m.list))
	for _, c := range m.list {
		cut := markdown.Truncate(c.Label, column)
		if cut != c.Label && seen[cut] {
			return true
		}
		seen[cut] = true
	}
	return false
}

// menuLines are the completions around the marked one.
func (w *window) menuLines() []string {
	if !w.menu.open() || w.note != nil || w.search != nil || w.card != nil && w.answering {
		return nil
	}
	limit := min(menuRows, max(w.tallest()-4, 1), len(w.menu.list))
	from := min(max(w.menu.at-limit/2, 0), len(w.menu.list)-limit)
	label, about := 0, 0
	for _, c := range w.menu.list {
		label, about = max(label, markdown.Width(c.Label)), max(about, markdown.Width(c.About))
	}
	column := min(label, max(w.room()/3, w.room()-4-about)) // descriptions give way first
	if w.menu.alike(column) {                               // descriptions give way further if names differ only at the end
		column = min(label, max(column, w.room()*2/3))
	}
	var out []string
	for i, c := range w.menu.list[from : from+limit] {
		label := markdown.Truncate(c.Label, column)
		label += strings.Repeat(" ", column-markdown.Width(label))
		about := markdown.Truncate(c.About, max(w.room()-column-4, 0))
		if from+i == w.menu.at {
			out = append(out, strings.TrimRight(w.look.Paint(theme.Accent, "› "+label)+"  "+about, " "))
			continue
		}
		out = append(out, strings.TrimRight("  "+label+"  "+w.look.Paint(theme.Faint, about), " "))
	}
	if w.picksTheme() {
		out = append(out, w.sample())
	}
	if more := len(w.menu.list) - limit; more > 0 {
		out = append(out, w.look.Paint(theme.Faint, fmt.Sprintf("  %d more, by the arrows", more)))
	}
	return out
}
