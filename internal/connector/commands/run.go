package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mark"
	"chorus/internal/text"
)

// here returns the conversations of a channel that this bot publishes, newest first.
func (b *Set) here(ctx context.Context, in room.Channel) ([]journal.Thread, error) {
	return b.hereMost(ctx, in, 100)
}

func (b *Set) hereMost(ctx context.Context, in room.Channel, most int) ([]journal.Thread, error) {
	rows, err := b.Backend.ThreadsIn(ctx, in.Place(), most)
	if err != nil {
		return nil, err
	}
	isHere := func(chat.ThreadID) bool { return true }
	if in.Parent != "" && !in.Private {
		if isHere, err = b.inThread(ctx, in); err != nil {
			return nil, err
		}
	}
	var out []journal.Thread
	for _, row := range rows {
		if b.Backend.Serves(b.Name, row.ID) && isHere(row.ID) {
			row.Title = b.Backend.Redact(row.Title) // before it is cut: half a secret would not be recognized
			out = append(out, row)
		}
	}
	return out, nil
}

// inThread returns a filter for the conversations of a platform thread: the
// one that it is, forks made in it, and the one whose answer it was opened on.
func (b *Set) inThread(ctx context.Context, in room.Channel) (func(chat.ThreadID) bool, error) {
	places, err := b.Backend.Places(ctx, b.Transport(), in.ID)
	return func(thread chat.ThreadID) bool {
		root := thread.Thread()
		return root == in.ID || strings.HasPrefix(root, in.ID+forkMark) ||
			slices.ContainsFunc(places, func(p journal.Place) bool { return p.Ours && p.Thread == thread })
	}, err
}

// Context is the value for an omitted option: the agent that answers here, the newest
// conversation of the channel, its memory. "": nothing.
func (b *Set) Context(ctx context.Context, i platform.Invocation, what string) string {
	if i.Absent {
		return ""
	}
	switch what {
	case "agent":
		l, _, err := b.listenerHere(ctx, i.In)
		if err != nil {
			return ""
		}
		return l.Name
	case "session", "running":
		rows, err := b.here(ctx, i.In)
		at := slices.IndexFunc(rows, func(row journal.Thread) bool { return what == "session" || on(row) })
		if err != nil || at < 0 {
			return ""
		}
		return string(rows[at].ID)
	case "memory":
		return "channel"
	default:
		return ""
	}
}

func on(row journal.Thread) bool { return row.Status.On() }

// caller may see this channel: everybody in a channel may see what happens in it.
func caller(by chat.Principal) operation.Caller {
	return operation.Caller{Principal: by, Scopes: []operation.Scope{operation.Admin}}
}

func (b *Set) stopHere(ctx context.Context, o request) platform.Answer {
	return says(b.stopAll(ctx, o.in, o.by, o.Allowed.ManageMessages, o.Flag["all"]))
}

func (b *Set) stopAll(ctx context.Context, in room.Channel, by chat.Principal, manager, all bool) string {
	rows, err := b.here(ctx, in)
	if err != nil {
		return b.UserMessage(err)
	}
	ended, others := 0, 0
	for _, row := range rows {
		if !on(row) && (!all || row.Waiting == 0) {
			continue
		}
		if !manager && !b.Asker(ctx, row.ID, by.ID) {
			others++
			continue
		}
		did, err := b.Backend.Abort(ctx, row.ID, by.String(), all)
		if err != nil {
			return b.UserMessage(err)
		}
		if did {
			ended++
		}
	}
	switch {
	case ended > 0:
		return fmt.Sprintf("Stopped %d.", ended)
	case others > 0:
		return "Other people asked for what runs here. They can stop it, or somebody who may manage messages."
	default:
		return "Nothing is running here."
	}
}

// spentBy returns everybody's costs on the server for those who manage it, otherwise the caller's own.
func (b *Set) spentBy(ctx context.Context, o request, since string) (operations.Costs, error) {
	q := operations.CostQuery{By: "agent", Since: since}
	by := operation.Caller{Principal: o.by, Scopes: []operation.Scope{operation.Read}}
	if in, ok := o.caller(); ok && o.Allowed.ManageGuild {
		by, q.Under = caller(o.by), b.Transport()+":"+in.Guild+"/"
	}
	return operations.GetCosts.Call(ctx, b.Backend, by, q)
}

func (b *Set) costs(ctx context.Context, o request) platform.Answer {
	costs, err := b.spentBy(ctx, o, cmp.Or(strings.TrimSpace(o.Text["since"]), "24h"))
	if err != nil {
		return says(b.UserMessage(err))
	}
	var out strings.Builder
	who, since := "You spent", "since "+mark.Time(costs.Since)
	if o.Allowed.ManageGuild {
		who = "Spent on this server"
	}
	if costs.Since.IsZero() {
		since = "in all"
	}
	fmt.Fprintf(&out, "%s %s: **%s**\n", who, since, text.Dollars(costs.Total))
	for _, c := range costs.Rows {
		fmt.Fprintf(&out, "- %s: %s, %s, %s tokens in, %s out\n", c.Key, text.Dollars(c.Dollars), text.Count(c.Calls, "call"), text.Thousands(c.InputTokens+c.CacheReadTokens+c.CacheWriteTokens), text.Thousands(c.OutputTokens))
	}
	return says(strings.TrimSpace(out.String()))
}
