package repl

import (
	"encoding/json"
	"fmt"
	"strings"

	"chorus/internal/markdown"
	"chorus/internal/text"
	"chorus/internal/theme"
)

// How much of a result is shown at once: for a command, the command and its last lines; for an edit, its first changes.
const (
	commandLines = 3
	outputLines  = 5
	diffLines    = 14
	liveLines    = 4  // of the output while it is written
	maxFolded    = 20 // results that can be shown in full
)

// toolLines show how a call ended: its summary line, the command, the last lines of output, the changes. folded means that there is more,
// which key (may be empty) shows.
func toolLines(f finished, width int, look theme.Theme, key string) (lines []string, folded bool) {
	command := commandOf(f.call)
	lines = strings.Split(toolLine(f, width, look), "\n")
	if command != "" {
		lines = lines[:1] // the reason is in the output
		ran, cut := ranLines(f, width, look)
		lines, folded = append(lines, ran...), cut
		out, cut := lastLines(resultText(f.ran), width, look)
		lines, folded = append(lines, out...), folded || cut
	}
	if f.ran.Diff != "" {
		diff, cut := firstChanges(changesOf(f), width, look)
		lines, folded = append(lines, diff...), folded || cut
	}
	if folded && key != "" {
		lines = append(lines, look.Paint(theme.Faint, "  "+key))
	}
	return lines, folded
}

// ranLines are the command that a call ran, unless the line above shows it.
func ranLines(f finished, width int, look theme.Theme) (lines []string, cut bool) {
	command := commandOf(f.call)
	if command == "" || f.call.label == "$ "+command && !strings.Contains(command, "\n") {
		return nil, false
	}
	shown := markdown.Diff(command, 0, theme.Theme{})
	for i, line := range shown[:min(len(shown), commandLines)] {
		mark := "  $ "
		if i > 0 {
			mark = "    "
		}
		cut = cut || markdown.Width(line) > width-4
		lines = append(lines, look.Paint(theme.Accent, mark)+markdown.Truncate(line, width-4))
	}
	if more := len(shown) - commandLines; more > 0 {
		cut = true
		lines = append(lines, look.Paint(theme.Faint, "    … "+text.Count(more, "more line")))
	}
	return lines, cut
}

// commandOf is the command that a call runs; "": none.
func commandOf(c *call) string {
	var in struct{ Command string }
	if json.Unmarshal(c.args, &in) != nil {
		return ""
	}
	return strings.TrimSpace(in.Command)
}

// lastLines are the end of an output.
func lastLines(output string, width int, look theme.Theme) (lines []string, cut bool) {
	output = strings.Trim(markdown.Clean(output), "\n")
	if strings.TrimSpace(output) == "" {
		return nil, false
	}
	all := strings.Split(output, "\n")
	if more := len(all) - outputLines; more > 0 {
		cut, all = true, all[more:]
		lines = append(lines, look.Paint(theme.Faint, "  … "+text.Count(more, "line")+" above"))
	}
	for _, line := range all {
		line = expand(line)
		cut = cut || markdown.Width(line) > width-2
		lines = append(lines, look.Paint(theme.Faint, "  "+clip(line, width-2)))
	}
	return lines, cut
}

// changesOf is the diff of a call. For a single file it omits the name, which is in the line above.
func changesOf(f finished) string {
	old, rest, _ := strings.Cut(f.ran.Diff, "\n")
	name, hunks, ok := strings.Cut(rest, "\n")
	if ok && len(f.ran.Changed) == 1 && strings.HasPrefix(old, "--- ") && strings.HasPrefix(name, "+++ ") && strings.HasPrefix(hunks, "@@") {
		return hunks
	}
	return f.ran.Diff
}

// firstChanges are the beginning of a diff.
func firstChanges(diff string, width int, look theme.Theme) (lines []string, cut bool) {
	all := markdown.Diff(diff, width-2, look)
	for _, line := range all[:min(len(all), diffLines)] {
		lines = append(lines, "  "+line)
	}
	if more := len(all) - diffLines; more > 0 {
		cut = true
		lines = append(lines, look.Paint(theme.Faint, fmt.Sprintf("  … %s", text.Count(more, "more line"))))
	}
	return lines, cut
}

// expand replaces tabs by spaces; clip cuts a line without merging its spaces, which form columns.
func expand(line string) string { return markdown.Diff(line, 0, theme.Theme{})[0] }

func clip(line string, width int) string {
	if markdown.Width(line) <= width {
		return line
	}
	return markdown.Truncate(line, width)
}

// unfold prints the last shortened result in full, and with the next call the one before it.
func (w *window) unfold() {
	if len(w.folded) == 0 {
		w.flash = "nothing more to show"
		return
	}
	f := w.folded[len(w.folded)-1]
	w.folded = w.folded[:len(w.folded)-1]
	w.put(blank, "")
	w.put(aside, w.look.Paint(theme.Strong, markdown.Truncate(f.call.label, w.room())))
	if command := commandOf(f.call); command != "" {
		w.put(aside, indent(markdown.Diff(command, w.room()-4, theme.Theme{}), w.look.Paint(theme.Accent, "  $ "), "    ")...)
		w.put(aside, indent(markdown.Diff(strings.Trim(resultText(f.ran), "\n"), w.room()-2, theme.Theme{}), "  ", "  ")...)
	}
	if f.ran.Diff != "" {
		w.put(aside, indent(markdown.Diff(f.ran.Diff, w.room()-2, w.look), "  ", "  ")...)
	}
	w.put(blank, "")
}

// indent puts a mark before the first line and spaces before the others.
func indent(lines []string, first, rest string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = rest + line
		if i == 0 {
			out[i] = first + line
		}
	}
	return out
}
