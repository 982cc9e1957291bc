package markdown

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"chorus/internal/pattern"
	"chorus/internal/theme"
)

// style says how a piece of text is drawn.
type style = theme.Style

// span is a piece of text that is drawn in one style.
type span struct {
	text  string
	style style
}

// paint draws spans, neighbours of the same style together.
func paint(look theme.Theme, spans []span) string {
	var out strings.Builder
	for i := 0; i < len(spans); {
		text, st := "", spans[i].style
		for ; i < len(spans) && spans[i].style == st; i++ {
			text += spans[i].text
		}
		out.WriteString(look.Paint(st, text))
	}
	return out.String()
}

// escapeCode matches a sequence that starts or ends a style.
var escapeCode = pattern.Lazy("\x1b\\[[0-9;]*m")

// lines splits a drawn text at its newlines. A style that is open at a newline is ended and started again, so that each
// line can be drawn alone.
func lines(drawn string) []string {
	out := strings.Split(drawn, "\n")
	open := ""
	for i, line := range out {
		begin := open
		if codes := escapeCode().FindAllString(line, -1); len(codes) > 0 {
			open = codes[len(codes)-1]
		}
		if open == theme.Reset {
			open = ""
		}
		if out[i] = begin + line; open != "" {
			out[i] += theme.Reset
		}
	}
	return out
}

// nonBreaking replaces the hyphen while text is wrapped: the library breaks lines after hyphens, but flags and addresses should stay whole.
const nonBreaking = "\u2011"

// wrap breaks a drawn text at spaces into lines of at most width columns.
func wrap(drawn string, width int) []string {
	whole := strings.ReplaceAll(drawn, "-", nonBreaking)
	return lines(strings.ReplaceAll(ansi.Wrap(whole, max(width, 1), ""), nonBreaking, "-"))
}

// wrapHard breaks at the exact column, for code.
func wrapHard(drawn string, width int) []string {
	return lines(ansi.Hardwrap(drawn, max(width, 1), true))
}

// Width is how many columns a text takes; escape sequences take none.
func Width(s string) int { return ansi.StringWidth(s) }

// Truncate cleans a text and shortens it to one line of at most width columns, with an ellipsis if something was cut.
func Truncate(s string, width int) string {
	s = Clean(s)
	if strings.ContainsAny(s, "\n\t") {
		s = strings.Join(strings.Fields(s), " ")
	}
	return ansi.Truncate(s, max(width, 0), "…")
}

// Wrap breaks a plain text (without escape sequences) into lines of at most width columns, preferably at spaces. Wrapped
// lines keep their indentation. Tabs become spaces.
func Wrap(s string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(Clean(s), "\n") {
		line = expandTabs(line)
		body := strings.TrimLeft(line, " ")
		pad := line[:len(line)-len(body)]
		pad = pad[:min(len(pad), max(width/2, 0))]
		for _, l := range wrap(body, width-len(pad)) {
			out = append(out, pad+l)
		}
	}
	return out
}
