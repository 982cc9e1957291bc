package repl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/theme"
)

// form asks for the values of a question one after the other.
type form struct {
	fields []chat.Field
	at     int // the current field
	values map[string][]string
}

// newForm is the form of a question; nil: the question asks for no values.
func newForm(a approval.Approval) *form {
	if !approval.IsQuestion(a.Actions) || len(a.Fields) == 0 {
		return nil
	}
	return &form{fields: a.Fields, values: map[string][]string{}}
}

// Words that are commands instead of values.
const (
	formNo   = "/no"
	formBack = "/back"
)

// formHelp explains how to enter values line by line.
const formHelp = "One value after the other. Enter takes the value in brackets, " + formBack + " goes back one value, " + formNo + " declines the question."

// suggested reports whether a plain yes is an answer.
func (f *form) suggested() bool {
	return !slices.ContainsFunc(f.fields, func(f chat.Field) bool { return !f.Optional && len(f.Values) == 0 })
}

// lines describe the current field and its choices.
func (f *form) lines() []string {
	field := f.fields[f.at]
	head := visibleLine(field.Label)
	if len(f.fields) > 1 {
		head = fmt.Sprintf("%d of %d: %s", f.at+1, len(f.fields), head)
	}
	if field.Optional {
		head += " (optional)"
	}
	out := []string{head}
	if hint := approval.Hint(field); hint != "" {
		out = append(out, "  "+visibleLine(hint))
	}
	for i, c := range field.Choices {
		line := fmt.Sprintf("  %d  %s", i+1, visibleLine(c.Label))
		if slices.Contains(field.Values, c.Value) {
			line += "  (chosen)"
		}
		out = append(out, line)
	}
	return out
}

// prompt is shown before the input.
func (f *form) prompt() string {
	field := f.fields[f.at]
	what := "a value"
	switch {
	case field.Several:
		what = "numbers or values, with commas"
	case len(field.Choices) > 0:
		what = "a number or a value"
	}
	if said := f.stands(); len(said) > 0 {
		what += " [" + visibleLine(markdown.Truncate(strings.Join(said, ", "), 40)) + "]"
	}
	return what + ":"
}

// stands is a field's value if nothing is typed.
func (f *form) stands() []string {
	field := f.fields[f.at]
	if said, ok := f.values[field.Name]; ok {
		return said
	}
	return field.Values
}

// take sets the current field and moves to the next. done: it was the last one.
func (f *form) take(line string) (done bool, err error) {
	field := f.fields[f.at]
	said := f.stands()
	if line = strings.TrimSpace(line); line != "" {
		said = f.chosen(line)
		if _, err := approval.ReadValue(field, strings.Join(said, ", ")); err != nil {
			return false, err
		}
	}
	switch {
	case len(said) > 0:
		f.values[field.Name] = said
	case !field.Optional:
		return false, &approval.Misfit{Field: field.Name, Why: "is missing"}
	}
	f.at++
	return f.at == len(f.fields), nil
}

// chosen are the values that were typed, or those of the typed numbers.
func (f *form) chosen(line string) []string {
	field := f.fields[f.at]
	parts := []string{line}
	if field.Several {
		parts = strings.Split(line, ",")
	}
	for i, part := range parts {
		part = strings.TrimSpace(part)
		if n, err := strconv.Atoi(part); err == nil && n > 0 && n <= len(field.Choices) && !slices.ContainsFunc(field.Choices, func(c chat.Choice) bool { return c.Value == part }) {
			part = field.Choices[n-1].Value
		}
		parts[i] = part
	}
	return parts
}

// back returns to the previous field.
func (f *form) back() { f.at = max(f.at-1, 0) }

// answer is the form's values as the note of an approval.
func (f *form) answer() verdict { return verdict{ok: true, note: approval.AnswerText(f.values)} }

// filled takes a line for the open question's form. done: v is the answer.
func (f *follower) filled(line string) (v verdict, done bool) {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case formNo:
		return verdict{}, true
	case formBack:
		f.form.back()
		return v, false
	}
	last, err := f.form.take(line)
	if err != nil {
		f.printer.screen.print(f.con.Err, "  "+visibleLine(err.Error()))
		return v, false
	}
	return f.form.answer(), last
}

// formPrompt shows the current field.
func (f *follower) formPrompt() {
	f.printer.screen.print(f.con.Err, f.unframed(framed(f.form.lines(), f.con.errLook()))...)
}

// framed puts lines into the frame of a card.
func framed(lines []string, look theme.Theme) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = look.Paint(theme.Warn, "│") + " " + line
	}
	return out
}

// formKey handles a key while a question's values are typed in the window.
func (w *window) formKey(name string) (tea.Cmd, bool) {
	switch name {
	case "enter":
		last, err := w.form.take(w.note.value())
		switch {
		case err != nil:
			w.flash = visibleLine(err.Error())
			return nil, true
		case last:
			return w.answer(w.form.answer()), true
		}
		w.nextField()
	case "shift+tab":
		w.form.back()
		w.nextField()
	case "esc", "tab":
		w.note, w.form = nil, nil
	case "up", "down", "ctrl+d":
	default:
		return nil, false
	}
	return nil, true
}

// nextField starts the input of the current field.
func (w *window) nextField() {
	value := newEditor(nil)
	w.note = &value
}

// formLines are the current field and the available keys.
func (w *window) formLines() []string {
	var out []string
	for _, line := range framed(w.form.lines(), w.look) {
		out = append(out, markdown.Truncate(line, w.room()))
	}
	keys := w.form.prompt() + " Enter continues, Shift+Tab goes back, Esc leaves"
	return append(out, w.look.Paint(theme.Warn, "└ "+markdown.Truncate(keys, w.room()-2)))
}
