// Package taskview shows tasks on a terminal: as a tree, in an overview of all work, and live.
package taskview

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"chorus/internal/markdown"
	"chorus/internal/operations"
	"chorus/internal/text"
	"chorus/internal/theme"
	"chorus/internal/work"
)

// stateLook returns the sign and the colour of a state. The text also names the state, so the colour is redundant.
func stateLook(state string) (sign string, style theme.Style) {
	switch s := work.State(state); {
	case s == work.Completed:
		return "✓", theme.Good
	case s == work.Failed || s == work.Blocked:
		return "✗", theme.Bad
	case s.Running() || s == work.Verifying:
		return "●", theme.Accent
	case s == work.WaitingInput || s.AsksForYes():
		return "?", theme.Warn
	case s == work.Ready:
		return "○", theme.Plain
	default:
		return "·", theme.Faint
	}
}

// maxTreeLine limits the length of the branches before a task.
const maxTreeLine = 400

// Tree draws a task with its subtasks and its progress.
func Tree(nodes []operations.TaskNode, look theme.Theme) string {
	width, done, seen := 0, 0, map[string]bool{}
	for _, n := range nodes {
		width = max(width, utf8.RuneCountInString(n.Line))
		if !seen[n.ID] && n.Status == string(work.Completed) {
			done++
		}
		seen[n.ID] = true
	}
	var out strings.Builder
	for _, n := range nodes {
		sign, style := stateLook(n.Status)
		line := text.Printable(n.Line, maxTreeLine)
		fmt.Fprintf(&out, "%s%s  %s  %s\n", line, strings.Repeat(" ", max(0, width-utf8.RuneCountInString(line))), look.Paint(style, sign+" "+n.Status), text.OneLine(n.Title))
	}
	if len(seen) > 1 {
		fmt.Fprintf(&out, "%s %d of %d completed\n", progressBar(done, len(seen), 20), done, len(seen))
	}
	return out.String()
}

// progressBar draws a share.
func progressBar(done, all, width int) string {
	full := 0
	if all > 0 {
		full = min(width*done/all, width)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
}

// Status draws the overview: what is worked on, what needs attention, what is next. width is the terminal's; 0: no terminal, and titles are not cut.
func Status(s operations.WorkStatus, look theme.Theme, width int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %s, %d of %s busy", text.Count(s.Projects, "project"), text.Count(s.Total, "task"), s.Running, text.Count(s.Workers, "worker"))
	if s.Paused {
		out.WriteString("; " + look.Paint(theme.Warn, "all work is paused"))
	}
	out.WriteString("\n")
	var counts []string
	for _, state := range work.States() {
		if n := s.ByStatus[string(state)]; n > 0 {
			sign, style := stateLook(string(state))
			counts = append(counts, look.Paint(style, fmt.Sprintf("%s %s %d", sign, state, n)))
		}
	}
	if len(counts) > 0 {
		fmt.Fprintf(&out, "%s\n", strings.Join(counts, "  "))
	}
	for _, part := range []struct {
		name  string
		tasks []operations.Task
	}{{"Worked on", s.InProgress}, {"Needs attention", s.Attention}, {"Next", s.Ready}} {
		if len(part.tasks) == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n%s\n", part.name)
		id, project, state := 0, 0, 0
		for _, t := range part.tasks {
			id, project, state = max(id, len(t.ID)), max(project, utf8.RuneCountInString(t.ProjectID)), max(state, len(t.Status))
		}
		for _, t := range part.tasks {
			sign, style := stateLook(t.Status)
			title := text.OneLine(t.Title)
			if room := width - 1 - (id + project + state + 10); width > 0 {
				title = markdown.Truncate(title, max(room, 12))
			}
			fmt.Fprintf(&out, "  %-*s  %-*s  %s  %s\n", id, text.OneLine(t.ID), project, text.OneLine(t.ProjectID), look.Paint(style, fmt.Sprintf("%s %-*s", sign, state, t.Status)), title)
			for _, line := range []string{work.Reason(t.Why), work.Typed(t.Why)} {
				if line != "" {
					for _, part := range text.WrapWords(text.OneLine(markdown.Clean(line)), width-3, markdown.Width) {
						fmt.Fprintf(&out, "  %s\n", look.Paint(theme.Faint, text.Clip(part, 119)))
					}
				}
			}
		}
	}
	return out.String()
}
