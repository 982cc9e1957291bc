package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
	"chorus/internal/room/render"
	"chorus/internal/text"
)

// maxListed is how many conversations a list shows.
const maxListed = 20

func (b *Set) threads(ctx context.Context, o request) platform.Answer {
	rows, err := b.here(ctx, o.in)
	if err != nil {
		return says(b.UserMessage(err))
	}
	all := len(rows)
	rows = slices.DeleteFunc(rows, func(row journal.Thread) bool { return row.Listing == listedArchived })
	archived := all - len(rows)
	slices.SortStableFunc(rows, func(a, b journal.Thread) int { return cmp.Compare(rank(a), rank(b)) })
	var out strings.Builder
	for _, row := range rows[:min(len(rows), maxListed)] {
		pin := ""
		if row.Listing == listedPinned {
			pin = "📌 "
		}
		fmt.Fprintf(&out, "- %s`%s` **%s** (%s): %s, last active %s%s\n", pin, row.ID.Thread(), titleOf(row), row.Agent, b.going(ctx, row), mark.Ago(row.LastActive), behind(row))
	}
	if more := len(rows) - maxListed; more > 0 {
		out.WriteString(mark.Small(fmt.Sprintf("and %d older conversations", more)) + "\n")
	}
	if archived > 0 {
		out.WriteString(mark.Small(fmt.Sprintf("%d archived; `/thread unarchive` suggests them as you type", archived)))
	}
	return says(cmp.Or(strings.TrimSpace(out.String()), "There are no conversations here yet."))
}

// Listings of conversations that are shown first, or not at all.
const (
	listedPinned   = "pinned"
	listedArchived = "archived"
)

// rank is a conversation's rank in lists: pinned ones come first.
func rank(row journal.Thread) int {
	if row.Listing == listedPinned {
		return 0
	}
	return 1
}

// one is the conversation that a command names, otherwise the last one of the channel.
func (b *Set) one(ctx context.Context, o request) (journal.Thread, error) {
	if name := o.Text["thread"]; name != "" {
		return b.named(ctx, o.in, name)
	}
	rows, err := b.here(ctx, o.in)
	if err == nil && len(rows) == 0 {
		err = connector.Refusal("there are no conversations here yet")
	}
	if err != nil {
		return journal.Thread{}, err
	}
	return rows[0], nil
}

// shownRuns is how many runs of a conversation are shown.
const shownRuns = 5

func (b *Set) threadHistory(ctx context.Context, o request) platform.Answer {
	row, err := b.one(ctx, o)
	if err != nil {
		return says(b.UserMessage(err))
	}
	s, err := operations.GetSession.Call(ctx, b.Backend, caller(o.by), operations.SessionRef{ID: string(row.ID)})
	if err != nil {
		return says(b.UserMessage(err))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "**%s** `%s`\n", titleOf(row), row.ID.Thread())
	for _, run := range s.Runs[:min(len(s.Runs), shownRuns)] {
		t, err := b.foldRun(ctx, row.ID, run.Run)
		if err != nil {
			return says(b.UserMessage(err))
		}
		fmt.Fprintf(&out, "%s: %s\n", mark.Time(t.Began), ending(t))
		for _, line := range t.Lines(time.Now()) {
			out.WriteString(line + "\n")
		}
	}
	if len(s.Runs) == 0 {
		out.WriteString("It has no runs yet.")
	}
	return says(strings.TrimSpace(out.String()))
}

// ending says how a run ended, and after how long.
func ending(t render.RunSteps) string {
	if t.End == nil {
		return fmt.Sprintf("running for %s, on `%s`", render.Duration(time.Since(t.Began).Truncate(time.Second)), t.Model)
	}
	return fmt.Sprintf("%s in %s and %s, on `%s`", outcome(t), text.Count(t.End.Steps, "step"), render.Duration(t.Ended.Sub(t.Began)), t.Model)
}

// outcome says why a run ended.
func outcome(t render.RunSteps) string {
	if t.End == nil {
		return "still running"
	}
	switch t.End.Reason {
	case "done":
		return "done"
	case "aborted":
		return "stopped"
	case "limit":
		return "stopped at the step limit"
	case "budget":
		return "stopped by a budget"
	case "denied":
		return "not allowed"
	default:
		return "failed"
	}
}
