package doctor

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"chorus/internal/text"
	"chorus/internal/theme"
)

// Style says how a report is written.
type Style struct {
	Look  theme.Theme // with colours, marks are coloured signs; without, they are words
	Width int         // of the terminal, for wrapping long texts in their column; 0: they are one line
}

// look is how a mark is shown.
type look struct {
	sign  string
	style theme.Style
}

func (m Mark) look() look {
	switch m {
	case OK:
		return look{"✓", theme.Good}
	case Note:
		return look{"·", theme.Faint}
	case Warn:
		return look{"!", theme.Warn}
	default:
		return look{"✗", theme.Bad}
	}
}

// widestWord is the length of "broken".
const widestWord = 6

// mark returns the beginning of a line.
func (s Style) mark(m Mark) string {
	if !s.Look.Colored() {
		return fmt.Sprintf("%-*s", widestWord, m)
	}
	l := m.look()
	return s.Look.Paint(l.style, l.sign)
}

// Text returns the report as a table: one line for each finding and, below each that is not good, what to do.
func (r Report) Text(s Style) string {
	var b strings.Builder
	indent := widestWord + 4
	if s.Look.Colored() {
		indent = 5
	}
	for i, section := range r.Sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s.Look.Paint(theme.Strong, section.Name) + "\n")
		width := 0
		for _, f := range section.Findings {
			width = max(width, utf8.RuneCountInString(tame(f.Name)))
		}
		for _, f := range section.Findings {
			name := tame(f.Name)
			gap := strings.Repeat(" ", width-utf8.RuneCountInString(name))
			fmt.Fprintf(&b, "  %s  %s%s  %s\n", s.mark(f.Mark), name, gap, s.hang(tame(f.Detail), indent+width+2))
			if f.Fix != "" && f.Mark != OK {
				fmt.Fprintf(&b, "%s%s %s\n", strings.Repeat(" ", indent), s.Look.Paint(theme.Faint, "→"), s.hang(tame(f.Fix), indent+2))
			}
		}
	}
	b.WriteString("\n" + s.Look.Paint(theme.Strong, r.verdict()) + "\n")
	return b.String()
}

// hang wraps a text so that it continues in the column in which it begins.
func (s Style) hang(words string, column int) string {
	if s.Width <= 0 {
		return words
	}
	return strings.Join(text.WrapWords(words, max(s.Width-1-column, 20), utf8.RuneCountInString), "\n"+strings.Repeat(" ", column))
}

// verdict summarises the report in a sentence.
func (r Report) verdict() string {
	switch {
	case r.Broken > 0 && r.Warnings > 0:
		return fmt.Sprintf("%s broken, %s", text.CountOf(r.Broken, "thing is", "things are"), text.Count(r.Warnings, "warning"))
	case r.Broken > 0:
		return text.CountOf(r.Broken, "thing is", "things are") + " broken"
	case r.Warnings > 0:
		return "nothing is broken, " + text.Count(r.Warnings, "warning")
	default:
		return "all is well"
	}
}

// tame makes a text from elsewhere one safe line: file names and error messages
// may contain anything, including terminal control sequences.
func tame(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError:
			return '?'
		}
		return r
	}, strings.TrimSpace(text))
}
