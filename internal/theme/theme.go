// Package theme defines the colours of the terminal in one table that says how each meaning looks in each theme.
//
// No other code writes colours, which a test checks, so no output can use a colour that a theme lacks. The dark and
// light themes use colours that are the same on every terminal and readable on such a background; the theme "terminal"
// uses the 16 colours that the terminal's owner chose.
package theme

import (
	"slices"
	"strings"
)

// Style is the meaning of a piece of text, or several meanings together.
type Style uint32

const (
	Strong Style = 1 << iota
	Italic
	Strike
	Underline
	Faint
	Code
	Heading
	Keyword
	String
	Comment
	Added
	Removed
	Hunk
	Good
	Bad
	Warn
	Accent
	end
)

// Plain is unstyled text.
const Plain Style = 0

// styles is the number of styles.
const styles = 17

// codes are the sequences sent to the terminal for each style, in the order of their bits; "": none.
type codes [styles]string

// tables are the columns of the table below.
type tables struct{ terminal, dark, light, vividDark, vividLight, marks codes }

// table defines all colours. 38;5;N with N from 16 are colours that no palette changes.
func table() *tables {
	rows := []struct {
		style                                                 Style
		terminal, dark, light, vividDark, vividLight, noColor string
	}{
		{Strong, "1", "1", "1", "1", "1", "1"},
		{Italic, "3", "3", "3", "3", "3", "3"},
		{Strike, "9", "9", "9", "9", "9", "9"},
		{Underline, "4", "4", "4", "4", "4", "4"},
		{Faint, "2", "38;5;248", "38;5;240", "", "", ""},
		{Code, "36", "38;5;80", "38;5;24", "38;5;123", "38;5;18", "1"},
		{Heading, "1;35", "1;38;5;183", "1;38;5;90", "1;4", "1;4", "1;4"},
		{Keyword, "35", "38;5;176", "38;5;90", "1;38;5;219", "1;38;5;53", "1"},
		{String, "32", "38;5;114", "38;5;22", "38;5;157", "38;5;22", ""},
		{Comment, "2", "38;5;248", "38;5;240", "", "", ""},
		{Added, "32", "38;5;114", "38;5;22", "38;5;157", "38;5;22", "1"},
		{Removed, "31", "38;5;210", "38;5;124", "38;5;217", "38;5;88", "7"},
		{Hunk, "36", "38;5;80", "38;5;24", "1;38;5;123", "1;38;5;18", "4"},
		{Good, "32", "38;5;114", "38;5;22", "1;38;5;157", "1;38;5;22", "1"},
		{Bad, "31", "38;5;210", "38;5;124", "1;38;5;217", "1;38;5;88", "1;7"},
		{Warn, "33", "38;5;221", "38;5;94", "1;38;5;228", "1;4", "1;4"},
		{Accent, "36", "38;5;80", "38;5;24", "1;38;5;123", "1;38;5;18", "1"},
	}
	t := &tables{}
	for i, r := range rows {
		t.terminal[i], t.dark[i], t.light[i], t.vividDark[i], t.vividLight[i], t.marks[i] = r.terminal, r.dark, r.light, r.vividDark, r.vividLight, r.noColor
	}
	return t
}

// Theme is the look of all output. The zero Theme has no colours and no other marks: text is unchanged.
type Theme struct{ codes *codes }

// The names of themes.
const (
	Auto         = "auto"
	Dark         = "dark"
	Light        = "light"
	HighContrast = "high-contrast"
	Terminal     = "terminal"
	None         = "none"
)

// Names lists all themes that can be chosen.
func Names() []string { return []string{Auto, Dark, Light, HighContrast, Terminal, None} }

// About describes a theme in a few words.
func About(name string) string {
	return map[string]string{
		Auto: "dark or light, matching the terminal's background", Dark: "for dark backgrounds", Light: "for light backgrounds",
		HighContrast: "strong colours and bold text, nothing faint", Terminal: "the sixteen colours of the terminal's own palette", None: "no colours at all",
	}[name]
}

// Background is what is known about the terminal's background.
type Background int

const (
	Unknown Background = iota
	IsDark
	IsLight
)

// Of returns the named theme for a background. few means that the terminal has at most sixteen colours. An unknown name counts as auto.
func Of(name string, on Background, few bool) Theme {
	t := table()
	switch {
	case name == None:
		return Theme{}
	case name == HighContrast && (few || on == Unknown):
		return Theme{&t.marks} // without colours, text is readable on any background
	case name == HighContrast && on == IsLight:
		return Theme{&t.vividLight}
	case name == HighContrast:
		return Theme{&t.vividDark}
	case name == Terminal || few:
		return Theme{&t.terminal}
	case name == Dark || name != Light && on == IsDark:
		return Theme{&t.dark}
	case name == Light || on == IsLight:
		return Theme{&t.light}
	}
	return Theme{&t.terminal}
}

// Asks reports whether a theme depends on the terminal's background.
func Asks(name string) bool { return !slices.Contains([]string{Dark, Light, Terminal, None}, name) }

// FewColors reports whether the environment indicates a terminal without the usual 256 colours.
func FewColors(env func(string) string) bool {
	term := env("TERM")
	many := func(part string) bool { return strings.Contains(term, part) }
	return env("COLORTERM") == "" && !slices.ContainsFunc([]string{"256color", "direct", "kitty", "ghostty", "alacritty", "wezterm", "foot"}, many)
}

// Colored reports whether anything is painted.
func (t Theme) Colored() bool { return t.codes != nil }

// Reset ends what Paint began.
const Reset = "\x1b[0m"

// Paint styles a text that contains no escape sequences of its own.
func (t Theme) Paint(style Style, s string) string {
	if t.codes == nil || style == Plain || s == "" {
		return s
	}
	var parts []string
	for i, code := range t.codes {
		if style&(1<<i) != 0 && code != "" {
			parts = append(parts, code)
		}
	}
	if len(parts) == 0 {
		return s
	}
	return "\x1b[" + strings.Join(parts, ";") + "m" + s + Reset
}
