package discord

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/room/render"
)

// threadOrders are about single conversations.
func threadOrders() []orders {
	which := func(required bool) []discord.ApplicationCommandOption {
		return []discord.ApplicationCommandOption{
			discord.ApplicationCommandOptionString{Name: "thread", Description: "The conversation: its id, or a beginning of it", Required: required, Autocomplete: true}}
	}
	create := discord.SlashCommandCreate{Name: "thread", Description: "The conversations of this channel", Options: []discord.ApplicationCommandOption{
		discord.ApplicationCommandOptionSubCommand{Name: "list", Description: "Which there are, the newest first"},
		discord.ApplicationCommandOptionSubCommand{Name: "kill", Description: "Stop one, with everything that waits for it", Options: which(true)},
		discord.ApplicationCommandOptionSubCommand{Name: "history", Description: "What one did, step by step, and how long each took", Options: which(false)},
		discord.ApplicationCommandOptionSubCommand{Name: "fork", Description: "Go on with a copy of one, as a conversation of its own", Options: which(true)},
	}}
	complete := map[string]completer{}
	for _, name := range []string{"kill", "history", "fork"} {
		complete["/thread/"+name] = (*Bot).proposeThreads
	}
	return []orders{
		{create: create, complete: complete, carry: map[string]handler{"/thread/list": (*Bot).threads, "/thread/kill": (*Bot).killOne,
			"/thread/history": (*Bot).threadHistory, "/thread/fork": forSpeakers((*Bot).forkWhole)}},
		{create: discord.MessageCommandCreate{Name: forkName}, carry: map[string]handler{forkName: forSpeakers((*Bot).forkHere)}},
	}
}

// manyListed is how many conversations a list shows.
const manyListed = 20

func (b *Bot) threads(ctx context.Context, o order) answer {
	rows, err := b.here(ctx, o.in)
	if err != nil {
		return says(plainly(err))
	}
	var out strings.Builder
	for _, row := range rows[:min(len(rows), manyListed)] {
		fmt.Fprintf(&out, "- `%s` **%s** (%s): %s, moved <t:%d:R>%s\n", row.ID.Thread(), titleOf(row), row.Agent, b.going(ctx, row), row.LastActive.Unix(), behind(row))
	}
	if more := len(rows) - manyListed; more > 0 {
		fmt.Fprintf(&out, "-# and %d older ones", more)
	}
	return says(first(strings.TrimSpace(out.String()), "There are no conversations here yet."))
}

func (b *Bot) killOne(ctx context.Context, o order) answer {
	row, err := b.named(ctx, o.in, o.data.String("thread"))
	if err != nil {
		return says(plainly(err))
	}
	return says(b.kill(ctx, row, o.by, o.mayManage()))
}

// one is the conversation that an order names, else the last one of the channel.
func (b *Bot) one(ctx context.Context, o order) (journal.Thread, error) {
	if name := o.data.String("thread"); name != "" {
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

// shownRuns is how many runs of a conversation are told.
const shownRuns = 5

func (b *Bot) threadHistory(ctx context.Context, o order) answer {
	row, err := b.one(ctx, o)
	if err != nil {
		return says(plainly(err))
	}
	s, err := b.Backend.GetSession(ctx, caller(o.by), string(row.ID))
	if err != nil {
		return says(plainly(err))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "**%s** `%s`\n", titleOf(row), row.ID.Thread())
	for _, run := range s.Runs[:min(len(s.Runs), shownRuns)] {
		t, err := b.told(ctx, row.ID, run.Run)
		if err != nil {
			return says(plainly(err))
		}
		fmt.Fprintf(&out, "<t:%d:f>: %s\n", t.Began.Unix(), ending(t))
		for _, line := range t.Lines(time.Now()) {
			out.WriteString(line + "\n")
		}
	}
	if len(s.Runs) == 0 {
		out.WriteString("Nothing has been done in it yet.")
	}
	return says(strings.TrimSpace(out.String()))
}

// ending says how a run ended, and after how long.
func ending(t render.Told) string {
	if t.End == nil {
		return fmt.Sprintf("still on for %s, on `%s`", render.Duration(time.Since(t.Began).Truncate(time.Second)), t.Model)
	}
	return fmt.Sprintf("%s in %s and %s, on `%s`", outcome(t), count(t.End.Steps, "step"), render.Duration(t.Ended.Sub(t.Began)), t.Model)
}

// outcome is why a run ended, in words.
func outcome(t render.Told) string {
	if t.End == nil {
		return "still on"
	}
	switch t.End.Reason {
	case "done":
		return "done"
	case "aborted":
		return "stopped"
	case "limit":
		return "ended at the limit of steps"
	case "budget":
		return "ended at a budget"
	case "denied":
		return "not allowed"
	default:
		return "failed"
	}
}
