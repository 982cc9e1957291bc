package repl

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/text"
	"chorus/internal/theme"
)

// spinner holds the frames; one is drawn per tick.
var spinner = [...]string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// tick is the interval of the spinner: fast enough to look alive, slow enough to
// cost nothing.
const tick = 100 * time.Millisecond

const voidWords = "discard the text above; the answer starts over"

// flow separates prose and actions by one blank line.
type flow struct{ last texture }

type texture int

const (
	aside  texture = iota // remarks: they join their neighbours
	prose                 // what the model writes
	action                // what tools did
	blank                 // an empty line: it needs no other
)

// next returns the lines, with a blank line before them if needed.
func (f *flow) next(t texture, lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	before := f.last
	f.last = t
	if strings.TrimSpace(lines[len(lines)-1]) == "" {
		f.last = blank
	}
	if (before == prose && t == action || before == action && t == prose) && strings.TrimSpace(lines[0]) != "" {
		return append([]string{""}, lines...)
	}
	return lines
}

// toolLine says how a call ended, in one line.
func toolLine(f finished, width int, look theme.Theme) string {
	mark, style, tail := "✓", theme.Good, ""
	if f.ran.TookMS > 0 {
		tail = duration(time.Duration(f.ran.TookMS) * time.Millisecond)
	}
	switch f.ran.Outcome {
	case chat.Denied:
		mark, style, tail = "✗", theme.Bad, "denied"
	case chat.Skipped:
		mark, style, tail = "–", theme.Faint, "skipped"
	case chat.Interrupted:
		mark, style, tail = "✗", theme.Bad, strings.TrimSpace("interrupted "+tail)
	case chat.Invalid:
		mark, style, tail = "✗", theme.Bad, "not a valid call"
	default:
		if !f.ran.Succeeded() {
			mark, style = "✗", theme.Bad
		}
	}
	var why string
	if f.ran.Failed || f.ran.Exit != 0 || f.ran.Outcome == chat.Denied {
		why, _, _ = strings.Cut(strings.TrimSpace(resultText(f.ran)), "\n")
		why = markdown.Truncate(why, 120)
	}
	room := max(width-2-markdown.Width(tail)-1, 8)
	label := markdown.Truncate(f.call.label, room)
	line := look.Paint(style, mark) + " " + label
	if tail != "" {
		line += " " + look.Paint(theme.Faint, tail)
	}
	if why != "" {
		line += "\n" + look.Paint(theme.Faint, "  "+markdown.Truncate(why, max(width-2, 8)))
	}
	return line
}

// resultText is the result of a call. If the person here denied it, only the reason is left.
func resultText(ran chat.ToolRan) string {
	said := ran.Blocks.Text()
	if rest, own := strings.CutPrefix(said, "denied by "+string(chat.LocalUser)+":"); own && ran.Outcome == chat.Denied {
		_, said, _ = strings.Cut(rest, ": ")
	}
	return said
}

// duration is short, and as exact as people need.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", max(d.Milliseconds(), 1))
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// elapsed is a duration for a redrawn line: whole seconds.
func elapsed(d time.Duration) string {
	if d < time.Second {
		return ""
	}
	if d < time.Minute {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return duration(d)
}

// count abbreviates a number of tokens.
func count(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// money formats billionths of a dollar; "" for zero.
func money(nanos int64) string {
	if nanos <= 0 {
		return ""
	}
	return text.Dollars(float64(nanos) / 1e9)
}

// endWords says how a run ended, unless it simply succeeded.
func endWords(e chat.RunEnded) string {
	var why string
	if e.Error != nil {
		why = strings.TrimSpace(markdown.Clean(e.Error.Message))
	}
	why = cmp.Or(why, strings.TrimSpace(markdown.Clean(e.Text)))
	with := func(head string) string {
		if why == "" || strings.EqualFold(why, head) {
			return head
		}
		return head + ": " + why
	}
	switch e.Reason {
	case chat.EndDone:
		return ""
	case chat.EndAborted:
		return "stopped"
	case chat.EndLimit:
		return with(fmt.Sprintf("stopped at the limit of %d steps", e.Steps))
	case chat.EndBudget:
		return with("stopped by a budget")
	case chat.EndDenied:
		return with("denied")
	default:
		return with("failed")
	}
}

// sumWords is the line below a finished run.
func sumWords(e chat.RunEnded) string {
	parts := []string{text.Count(e.Steps, "step")}
	if n := e.Usage.Total(); n > 0 {
		parts = append(parts, count(n)+" tokens")
	}
	if m := money(e.Cost); m != "" {
		parts = append(parts, m)
	}
	return strings.Join(parts, " · ")
}

// settledWords says who answered an approval.
func settledWords(s settled) string {
	verb := "denied"
	if s.OK {
		verb = "approved"
	}
	line := verb + ": " + s.name
	if s.By != "" {
		line += " (by " + s.By + ")"
	}
	if s.Note != "" {
		line += " — " + s.Note
	}
	return line
}

// say wraps a remark under a mark before its first line.
func say(mark, text string, width int) []string {
	pad := strings.Repeat(" ", markdown.Width(mark))
	var out []string
	for i, line := range markdown.Wrap(text, max(width-len(pad), 8)) {
		if i == 0 {
			out = append(out, mark+line)
			continue
		}
		out = append(out, pad+line)
	}
	return out
}

// wrapRows wraps an answer; the second column continues under itself.
func wrapRows(answer string, width int) (out []string) {
	for line := range strings.SplitSeq(markdown.Clean(answer), "\n") {
		at := secondColumn(line)
		if at == 0 || at > width/2 || markdown.Width(line) <= width {
			out = append(out, markdown.Wrap(line, width)...)
			continue
		}
		out = append(out, indent(markdown.Wrap(line[at:], width-at), line[:at], strings.Repeat(" ", at))...)
	}
	return out
}

// secondColumn is the start of a row's second column, after two spaces or more; 0: there is none, or it is unclear.
func secondColumn(line string) int {
	first := len(line) - len(strings.TrimLeft(line, " "))
	gap := strings.Index(line[first:], "  ")
	if gap < 0 {
		return 0
	}
	at := first + gap
	rest := strings.TrimLeft(line[at:], " ")
	if at = len(line) - len(rest); rest == "" || markdown.Width(line[:at]) != at { // letters of zero or double width
		return 0
	}
	return at
}
