package markdown

import "strings"

// Diff draws a unified diff: what is added green, what is removed red. Control
// characters are spelled out, for a person decides upon what is shown. Lines are
// broken at width columns; width 0 leaves them alone.
func Diff(text string, width int, color bool) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		line = expandTabs(Visible(strings.TrimSuffix(line, "\r")))
		var st style
		if color {
			st = diffStyle(line)
		}
		if width <= 0 {
			out = append(out, styled(line, st))
			continue
		}
		out = append(out, wrapHard(styled(line, st), width)...)
	}
	return out
}

func diffStyle(line string) style {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
		return bold
	case strings.HasPrefix(line, "@@"):
		return hunk
	case strings.HasPrefix(line, "+"):
		return added
	case strings.HasPrefix(line, "-"):
		return removed
	}
	return 0
}
