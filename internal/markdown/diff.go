package markdown

import (
	"strings"

	"chorus/internal/theme"
)

// Diff draws a unified diff with colours for added and removed lines. Control characters are escaped, because a person
// decides on what is shown. Lines are wrapped at width columns; 0 means not at all.
func Diff(text string, width int, look theme.Theme) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		line = expandTabs(Visible(strings.TrimSuffix(line, "\r")))
		drawn := look.Paint(diffStyle(line), line)
		if width <= 0 {
			out = append(out, drawn)
			continue
		}
		out = append(out, wrapHard(drawn, width)...)
	}
	return out
}

func diffStyle(line string) style {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
		return theme.Strong
	case strings.HasPrefix(line, "@@"):
		return theme.Hunk
	case strings.HasPrefix(line, "+"):
		return theme.Added
	case strings.HasPrefix(line, "-"):
		return theme.Removed
	}
	return 0
}
