package runsetup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/room/render"
	"chorus/internal/settings"
	"chorus/internal/text"
)

// OtherThreads is the subject of the note about an agent's other work.
const OtherThreads = "your other threads"

// maxOthers is how many threads the note names.
const maxOthers = 10

// others tells a run what else its agent is doing, so that it does not interfere with that work. It
// is a note at the end of the window, so nothing that was sent before changes. It shows what people
// said only in conversations in the same place, or to somebody alone with their own agent: an agent
// must not carry words from one room into another.
func (s *Setup) others(ctx context.Context, at NoteContext) (string, error) {
	row := at.Row
	list, all, err := s.DB.OtherWork(ctx, row, maxOthers)
	if err != nil || len(list) == 0 {
		return "", err
	}
	alone := !row.ID.OnPlatform() || settings.GuildOf(row.ID) == "" // nobody else listens
	var lines strings.Builder
	lines.WriteString("These run at the same time as this one.")
	if slices.ContainsFunc(list, func(other journal.Thread) bool { return other.Dir == row.Dir }) {
		lines.WriteString(" Those that share your workspace say so: do not undo what they do.")
	}
	lines.WriteByte('\n')
	for _, other := range list {
		own := other.Owner.String() != "" && other.Owner.String() == row.Owner.String()
		summary := "one in another place" // its name must not be shown here either
		switch {
		case other.Place == row.Place || alone && own:
			summary = fmt.Sprintf("%s %q", other.ID.Thread(), text.Clip(strings.Join(strings.Fields(other.Title), " "), 80))
		case own:
			summary = other.ID.Thread() + " in another place"
		}
		if other.Dir == row.Dir {
			summary += " (in your workspace)"
		}
		fmt.Fprintf(&lines, "- %s: %s\n", summary, s.doing(ctx, other))
	}
	if more := all - len(list); more > 0 {
		fmt.Fprintf(&lines, "- and %d more\n", more)
	}
	return lines.String(), nil
}

// doing says what a thread does: its status, its step, and for how long.
func (s *Setup) doing(ctx context.Context, t journal.Thread) string {
	status := "running"
	if t.Status == chat.Waiting {
		status = "waiting for approval"
	}
	runs, err := s.DB.RunsOf(ctx, t.ID, 1)
	if err != nil || len(runs) == 0 || runs[0].End != nil {
		return status
	}
	step := 0
	if seqs, err := s.DB.Seqs(ctx, t.ID, chat.KindAsked, runs[0].Start.Seq, t.Next, 1); err == nil && len(seqs) > 0 {
		if ev, err := s.DB.Event(ctx, t.ID, seqs[0]); err == nil {
			if asked, ok := ev.Body.(chat.Asked); ok {
				step = asked.Step
			}
		}
	}
	return fmt.Sprintf("%s, step %d, for %s", status, step, render.Duration(time.Since(runs[0].Start.At).Truncate(time.Second)))
}
