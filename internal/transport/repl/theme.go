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

// themes holds a window's theme, and how to store another.
type themes struct {
	name string                                       // the current theme
	seen string                                       // the theme previewed in the picker; "": none
	on   theme.Background                             // the background that the terminal reported
	few  bool                                         // the terminal has sixteen colours
	keep func(ctx context.Context, name string) error // nil: the theme is not stored
}

// themeCommand is answered by the window alone: other outputs have no colours.
var themeCommand = Command{"theme", "[name]", "Show or change the colours"}

// themeMsg says how long the chosen theme lasts.
type themeMsg struct{ name, until string }

// askBackground asks the terminal for its background colour. Nobody waits: until it answers, or if it does not, the colours are those
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

// paint switches the window to a theme. Text that is already printed does not change.
func (w *window) paint(name string) {
	w.look = theme.Of(name, w.themes.on, w.themes.few)
	w.md.SetTheme(w.look)
}

// previewTheme shows the theme marked in the picker, or the current one once the picker is closed.
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

// picksTheme reports whether the theme picker is open.
func (w *window) picksTheme() bool {
	return w.menu.open() && w.menu.runs && strings.HasPrefix(w.menu.typed, "/"+themeCommand.Name+" ")
}

// themeChoices are the themes whose names begin with what is typed after the command.
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

// sample shows a theme's most frequent styles.
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

// setTheme changes and stores the theme.
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
