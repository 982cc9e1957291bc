package memory

import (
	"cmp"
	"fmt"
	"strings"

	"chorus/internal/text"
	"chorus/internal/untrusted"
)

// Empty is what is shown if there is no memory at all.
const Empty = "(no memory yet)"

// Shown is how much of a file a model is shown: four thousand tokens, in every conversation of
// its scope. From Full on, the model is told that the file is filling up.
const (
	Shown = 16 << 10
	Full  = Shown * 3 / 4
)

// Render returns a file as a model is shown it. What agents wrote is framed as the words of those
// on whose behalf they wrote it. "" means that there is nothing to show.
func (c Content) Render() string {
	if c.Problem != "" {
		return fmt.Sprintf("### %s (%s)\n(It is not shown: %s.)", c.Title, c.Tool(), c.Problem)
	}
	if strings.TrimSpace(c.Text) == "" {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "### %s (%s)\n", c.Title, c.Tool())
	room, left := Shown, 0
	if c.Path == System && len(c.Text) > Shown {
		fmt.Fprintf(&out, "[The older %s are not shown.]\n", size(int64(len(c.Text)-Shown)))
	}
	for _, part := range c.clipped() {
		body := part.Text
		if len(body) > room {
			cut := text.Prefix(body, room)
			left += len(body) - len(cut)
			body = cut
		}
		room -= len(body)
		switch {
		case strings.TrimSpace(body) == "":
			continue
		case part.Owner:
			out.WriteString(body + "\n")
		default:
			out.WriteString(untrusted.Frame("memory, written on the words of "+part.voice(), body) + "\n")
		}
	}
	switch {
	case left > 0:
		fmt.Fprintf(&out, "[%s more are not shown: at most %s are. Shorten the file: merge lines, and remove what is no longer true.]\n", size(int64(left)), size(Shown))
	case len(c.Text) > Full && c.Path != System:
		fmt.Fprintf(&out, "[It has %s of the %s that are shown: tidy it up before it is full.]\n", size(int64(len(c.Text))), size(Shown))
	}
	return strings.TrimSpace(out.String())
}

// clipped returns the parts in display order, cut to the limit. Of a log,
// the newest entries matter, which are at its end.
func (c Content) clipped() []Part {
	if c.Path != System || len(c.Text) <= Shown {
		return c.parts
	}
	drop := len(c.Text) - Shown
	var out []Part
	for _, p := range c.parts {
		if drop >= len(p.Text) {
			drop -= len(p.Text) + 1
			continue
		}
		if drop > 0 {
			_, rest, _ := strings.Cut(p.Text[drop:], "\n")
			p.Text, drop = rest, 0
		}
		out = append(out, p)
	}
	return out
}

// Parts returns the parts of the text by origin.
func (c Content) Parts() []Part { return c.parts }

// voice names whose words a part is.
func (p Part) voice() string {
	return cmp.Or(p.Who, "somebody unknown")
}

// Append adds something to remember to a text, as a list item.
func Append(text, what string) string {
	what = strings.TrimSpace(what)
	if !strings.HasPrefix(what, "- ") && !strings.HasPrefix(what, "#") {
		what = "- " + strings.ReplaceAll(what, "\n", "\n  ")
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + what + "\n"
}

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
}
