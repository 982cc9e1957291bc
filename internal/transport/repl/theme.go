package repl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/markdown"
	"chorus/internal/theme"
)

// themes is which theme a window has, and who keeps another for the next time.
type themes struct {
	name string                                       // the one that holds
	seen string                                       // the one that is looked at in the picker; "": none
	on   theme.Background                             // what the terminal has said of itself
	few  bool                                         // it has sixteen colours
	keep func(ctx context.Context, name string) error // nil: nobody does
}

// themeCommand is answered by the window alone: where nothing is drawn there are no colours.
var themeCommand = Command{"theme", "[name]", "show or change the colours"}

// themeMsg says for how long a theme was chosen.
type themeMsg struct{ name, until string }

// askBackground asks the terminal for the colour of its background. Nobody waits: until it answers, and where it does not, the colours are those
// that every terminal has.
func (w *window) askBackground() tea.Cmd {
	if w.themes.on != theme.Unknown || !theme.Asks(w.themes.name) {
		return nil
	}
	return tea.RequestBackgroundColor
}

// background takes the terminal's answer.
func (w *window) background(msg tea.BackgroundColorMsg) {
	if msg.Color == nil {
		return
	}
	if w.themes.on = theme.IsLight; msg.IsDark() {
		w.themes.on = theme.IsDark
	}
	w.paint(w.themes.name)
}

// paint has the window look as a theme wants it. What is printed above stays as it was.
func (w *window) paint(name string) {
	w.look = theme.Of(name, w.themes.on, w.themes.few)
	w.md.SetTheme(w.look)
}

// previewTheme shows the theme that is marked in the picker, and the one that holds when the picker is gone.
func (w *window) previewTheme() {
	marked := ""
	if w.picksTheme() {
		marked = w.menu.list[w.menu.at].Label
	}
	if marked == w.themes.seen {
		return
	}
	if w.themes.seen = marked; marked == "" {
		marked = w.themes.name
	}
	w.paint(marked)
}

// picksTheme reports whether the picker of themes is open.
func (w *window) picksTheme() bool {
	return w.menu.open() && w.menu.runs && strings.HasPrefix(w.menu.typed, "/"+themeCommand.Name+" ")
}

// themeChoices are the themes whose names begin as what is typed behind the command.
func (w *window) themeChoices(typed string) (out []Completion) {
	for _, name := range theme.Names() {
		about := theme.About(name)
		if name == w.themes.name {
			about = current + ": " + about
		}
		if strings.HasPrefix(name, typed) {
			out = append(out, Completion{Line: "/" + themeCommand.Name + " " + name, Label: name, About: about})
		}
	}
	return out
}

// sample shows what a theme makes of what is shown most.
func (w *window) sample() string {
	line, width := "", 0
	for _, part := range []struct {
		style theme.Style
		text  string
	}{{theme.Good, "✓ done"}, {theme.Bad, "✗ failed"}, {theme.Warn, "an approval"}, {theme.Accent, "$ command"}, {theme.Added, "+added"}, {theme.Removed, "-removed"}, {theme.Code, "code"},
		{theme.Faint, "aside"}, {theme.Heading, "Heading"}} {
		if width += 2 + markdown.Width(part.text); width > w.room() {
			break
		}
		line += "  " + w.look.Paint(part.style, part.text)
	}
	return line
}

// setTheme changes the theme and has it kept.
func (w *window) setTheme(name string) tea.Cmd {
	if !slices.Contains(theme.Names(), name) {
		w.say(theme.Warn, "• ", fmt.Sprintf("there is no theme %s; choose one of %s", name, strings.Join(theme.Names(), ", ")))
		return nil
	}
	w.themes.name, w.themes.seen = name, ""
	w.paint(name)
	return tea.Batch(w.askBackground(), func() tea.Msg {
		if w.themes.keep == nil {
			return themeMsg{name, "until you leave; set `theme` in this machine's configuration to keep it"}
		}
		if err := w.themes.keep(w.ctx, name); err != nil {
			return themeMsg{name, "until you leave; it could not be saved: " + err.Error()}
		}
		return themeMsg{name, "from now on"}
	})
}
