package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"chorus/internal/journal"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
)

// why explains the answer that somebody names, otherwise the last one of the channel.
func (b *Set) why(ctx context.Context, o request) platform.Answer {
	message := ""
	if o.On != nil {
		message = o.On.ID
	} else if link := o.Text["message"]; link != "" {
		if message = messageIn(link); message == "" {
			return says(strings.TrimSpace("That is not a message link or id. " + b.Caps().Hints.CopyLink))
		}
	}
	if message != "" {
		return b.whyMessage(ctx, o, message)
	}
	rows, err := b.here(ctx, o.in)
	if err != nil {
		return says(b.UserMessage(err))
	}
	for _, row := range rows {
		t, err := b.foldRun(ctx, row.ID, "")
		if err != nil {
			return says(b.UserMessage(err))
		}
		if t.Run != "" {
			return b.explain(ctx, o, row, t)
		}
	}
	return says("There are no answers here yet.")
}

// messageIn is the id in a link to a message, or the id itself; "": neither.
func messageIn(link string) string {
	link = strings.Trim(strings.TrimSpace(link), "<>")
	id := link[strings.LastIndexByte(link, '/')+1:]
	if strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsDigit(r) && r != '.' && r != '-' }) {
		return ""
	}
	return id
}

// whyMessage explains the run of a message: one of ours that reported it, or
// the one that asked for it. Messages of other channels are not explained here.
func (b *Set) whyMessage(ctx context.Context, o request, message string) platform.Answer {
	places, err := b.Backend.Places(ctx, b.Transport(), message)
	if err != nil {
		return says(b.UserMessage(err))
	}
	for _, p := range places {
		if p.Thread.Place() != o.in.Place() || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		run, err := b.runOf(ctx, p)
		if err != nil {
			return says(b.UserMessage(err))
		}
		row, rerr := b.Backend.Thread(ctx, p.Thread)
		t, err := b.foldRun(ctx, p.Thread, run)
		if err := errors.Join(rerr, err); err != nil {
			return says(b.UserMessage(err))
		}
		if run != "" && t.Run != "" {
			return b.explain(ctx, o, row, t)
		}
		return says("That message has no answer yet.")
	}
	return says("That message is not an agent's answer in this channel, and not a question to one.")
}

// runOf is the run of a message; "": none.
func (b *Set) runOf(ctx context.Context, p journal.Place) (string, error) {
	if !p.Ours {
		return b.Backend.RunOf(ctx, p.Thread, p.Seq)
	}
	what, rest, _ := strings.Cut(p.Key, "/")
	switch what {
	case "ask":
		a, err := b.Backend.Approval(ctx, rest)
		return a.Run, err
	case "refused", "fork", "told":
		return "", nil
	default:
		return what, nil // its messages start with the run
	}
}

func (b *Set) explain(ctx context.Context, o request, row journal.Thread, t render.RunSteps) platform.Answer {
	var out strings.Builder
	fmt.Fprintf(&out, "**%s**\n", titleOf(row))
	for _, seq := range t.Prompts {
		if ev, err := b.Backend.EventNow(ctx, row.ID, seq); err == nil {
			who, words := b.asked(ev)
			fmt.Fprintf(&out, "%s asked %s: %s\n", who, mark.Ago(ev.At), mark.Line(b.Backend.Redact(words), 100))
		}
	}
	fmt.Fprintf(&out, "**%s** worked on it with the profile `%s`. Result: %s.\n", row.Agent, cmp.Or(t.Profile, "none"), ending(t))
	if t.End != nil && t.End.Error != nil {
		fmt.Fprintf(&out, "What went wrong: %s\n", mark.Line(t.End.Error.Message, 200))
	}
	for _, d := range t.Dropped {
		fmt.Fprintf(&out, "Setting without effect: %s\n", mark.Line(d, 200))
	}
	for _, why := range t.Left {
		fmt.Fprintf(&out, "Left out of its context: %s\n", mark.Line(why, 200))
	}
	b.rulings(ctx, &out, o, row, t)
	list := func(what string, files []string) {
		if len(files) > 0 {
			fmt.Fprintf(&out, "%s: %s\n", what, split.Clip("`"+strings.Join(files, "`, `")+"`", 300))
		}
	}
	if t.Head != "" {
		if knew, err := b.Backend.PromptSources(ctx, t.Head); err == nil {
			list("It knew from the start", knew)
		}
	}
	list("Its notes included", t.Noted)
	list("It read", t.Read)
	list("It changed", t.Changed)
	if len(t.Read)+len(t.Changed) == 0 {
		out.WriteString("It did not read or change any files.\n")
	}
	in := t.Usage.Input + t.Usage.CacheRead + t.Usage.CacheWrite
	fmt.Fprintf(&out, "Tokens: %s", render.Tokens(t.Usage))
	if in > 0 {
		fmt.Fprintf(&out, "; %d %% of the input was cached", t.Usage.CacheRead*100/in)
	}
	if t.End != nil {
		fmt.Fprintf(&out, ". It cost %s.", cmp.Or(render.Money(t.End.Cost), "nothing"))
	}
	return says(strings.TrimSpace(out.String()))
}

// rulings lists what was allowed or not, and by which rule.
func (b *Set) rulings(ctx context.Context, out *strings.Builder, o request, row journal.Thread, t render.RunSteps) {
	audit, err := operations.ListAudit.Call(ctx, b.Backend, caller(o.by), operations.AuditQuery{Session: string(row.ID), Limit: 200})
	if err != nil {
		return
	}
	for i := len(audit.Items) - 1; i >= 0; i-- { // newest first
		line := audit.Items[i]
		if line.Run != t.Run {
			continue
		}
		action := mark.Line(strings.Replace(strings.TrimPrefix(line.Action, "tool:"), ":", " ", 1), 90)
		rule := ""
		if name := permit.RuleName(line.Rule); name != "" {
			rule = ", by the rule *" + name + "*"
		} else if line.Rule != "" { // one of their own rules
			rule = fmt.Sprintf(", by the rule `%s`", mark.Line(line.Rule, 60))
		}
		by := strings.TrimPrefix(line.Detail, "by ")
		switch line.Decision {
		case "ask_approved":
			fmt.Fprintf(out, "- `%s` needed approval, and %s approved it%s\n", action, b.MentionPeople(by), rule)
		case "ask_denied":
			fmt.Fprintf(out, "- `%s` needed approval, and %s denied it%s\n", action, b.MentionPeople(by), rule)
		case "allow":
			fmt.Fprintf(out, "- `%s` was allowed%s\n", action, rule)
		default:
			fmt.Fprintf(out, "- `%s` was refused%s\n", action, rule)
		}
	}
}
