package commands

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/connector/publish"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mark"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
	"chorus/internal/room/threadname"
	"chorus/internal/text"
)

// foldRun returns the steps of a conversation's active run, or of its last one.
func (b *Set) foldRun(ctx context.Context, thread chat.ThreadID, run string) (render.RunSteps, error) {
	events, err := b.Backend.RunEvents(ctx, thread, run)
	return render.StepsOf(events, publish.CallLabel), err
}

// titleOf is a conversation's title for people.
func titleOf(row journal.Thread) string {
	return mark.Line(cmp.Or(threadname.Plain(row.Title), row.ID.Thread()), 60)
}

// going describes what a conversation is doing: its step, for how long, what it waits for.
func (b *Set) going(ctx context.Context, row journal.Thread) string {
	t, err := b.foldRun(ctx, row.ID, "")
	if err != nil || t.End != nil || t.Began.IsZero() {
		return state(row)
	}
	parts := []string{state(row)}
	if t.Step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", t.Step))
	}
	parts = append(parts, render.Duration(time.Since(t.Began).Truncate(time.Second)))
	if doing := t.Doing(); row.Status == chat.Running && doing != "" {
		parts = append(parts, mark.Line(b.Backend.Redact(doing), 80))
	}
	return strings.Join(parts, ", ")
}

// waitingHere returns the open questions in a channel.
func (b *Set) waitingHere(ctx context.Context, rows []journal.Thread) ([]approval.Approval, error) {
	var out []approval.Approval
	for _, row := range rows {
		if row.Status != chat.Waiting {
			continue
		}
		list, err := b.Backend.Approvals(ctx, approval.Filter{Thread: row.ID, State: approval.Open})
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

func (b *Set) status(ctx context.Context, o request) platform.Answer {
	listeners, err := b.Backend.Listeners(ctx, b.Name, b.Self(), o.in)
	if err != nil {
		return says(b.UserMessage(err))
	}
	rows, err := b.here(ctx, o.in)
	if err != nil {
		return says(b.UserMessage(err))
	}
	var out strings.Builder
	for _, l := range listeners {
		b.statusOf(ctx, &out, l, o.in, rows)
	}
	if len(listeners) == 0 {
		out.WriteString("No agent answers here.\n")
	}
	running := 0
	for _, row := range rows {
		if on(row) {
			running++
			fmt.Fprintf(&out, "- %s: %s%s\n", titleOf(row), b.going(ctx, row), behind(row))
		}
	}
	if running == 0 {
		out.WriteString("Nothing is running here.\n")
	}
	open, err := b.waitingHere(ctx, rows)
	if err != nil {
		return says(b.UserMessage(err))
	}
	for _, a := range open {
		fmt.Fprintf(&out, "- needs approval: `%s`, asked %s\n", mark.Line(b.Backend.Redact(publish.CallLabel(a.Call.Name, a.Call.Args)), 80), mark.Ago(a.AskedAt))
	}
	b.spent(ctx, &out, o)
	return platform.Answer{Text: strings.TrimSpace(out.String()), Panel: true}
}

// statusOf describes one agent: what it works on, and how full its window is.
func (b *Set) statusOf(ctx context.Context, out *strings.Builder, l connector.Listener, in room.Channel, rows []journal.Thread) {
	model, profile := b.Backend.Defaults(ctx, l.Agent, in)
	fmt.Fprintf(out, "**%s** answers here · model `%s` · profile `%s` · routing `%s`\n", l.Name, model, profile, cmp.Or(string(l.Routing), "reply"))
	for _, row := range rows {
		if row.Agent != l.Name {
			continue
		}
		used, err := b.Backend.WindowUse(ctx, row.ID)
		if err != nil {
			return
		}
		size := text.Thousands(used) + " tokens"
		if t, err := b.foldRun(ctx, row.ID, ""); err == nil && t.Window > 0 {
			size = fmt.Sprintf("%s of %s tokens (%d %%)", text.Thousands(used), text.Thousands(t.Window), used*100/t.Window)
		}
		out.WriteString(mark.Small("window of the last conversation: "+size) + "\n")
		return
	}
}

// behind says how many prompts wait for a conversation.
func behind(row journal.Thread) string {
	if row.Waiting == 0 {
		return ""
	}
	return fmt.Sprintf(", %d more waiting", row.Waiting)
}

// spent says what somebody spent today, and for server managers what everybody did.
func (b *Set) spent(ctx context.Context, out *strings.Builder, o request) {
	own := operation.Caller{Principal: o.by, Scopes: []operation.Scope{operation.Read}}
	mine, err := operations.GetCosts.Call(ctx, b.Backend, own, operations.CostQuery{By: "agent", Since: "today"})
	if err != nil {
		return
	}
	out.WriteString(mark.Small("today (UTC) you spent " + dollars(mine.Total)))
	if o.Allowed.ManageGuild {
		if all, err := b.spentBy(ctx, o, "today"); err == nil {
			fmt.Fprintf(out, ", everybody on this server %s", dollars(all.Total))
		}
	}
}

func dollars(usd float64) string {
	if usd == 0 {
		return "nothing"
	}
	return text.Dollars(usd)
}

// maxStops is how many conversations have their own button; longer lists use a menu.
const maxStops = 5

func (b *Set) tasks(ctx context.Context, o request) platform.Answer { return b.tasksBut(ctx, o, "") }

// stopped stops a conversation from the list of what runs, and shows the rest of it.
func (b *Set) stopped(ctx context.Context, p platform.Press, id string) platform.Answer {
	o := request{platform.Invocation{By: p.By, In: p.In, Allowed: p.Allowed}, b.Principal(p.By), p.In}
	said := b.halt(ctx, p.In, id, o.by, p.Allowed.ManageMessages)
	a := b.tasksBut(ctx, o, id)
	a.Text, a.Panel, a.Replace = said+"\n"+a.Text, true, true
	return a
}

// tasksBut lists what runs and waits without the conversation that was just told to stop, which may still be ending.
func (b *Set) tasksBut(ctx context.Context, o request, stopped string) platform.Answer {
	rows, err := b.here(ctx, o.in)
	if err != nil {
		return says(b.UserMessage(err))
	}
	var out strings.Builder
	a := platform.Answer{Panel: true}
	var stops []platform.Choice
	n := 0
	for _, row := range rows {
		if !on(row) && row.Waiting == 0 || haltID(row.ID) == stopped {
			continue
		}
		n++
		fmt.Fprintf(&out, "%d. **%s** (%s): %s%s\n", n, titleOf(row), row.Agent, b.going(ctx, row), behind(row))
		b.waitingIn(ctx, &out, row, "   - ")
		a.Buttons = append(a.Buttons, platform.Button{Style: platform.Danger, Label: fmt.Sprintf("Stop %d", n), Value: platform.ButtonValue(platform.PressHalt, haltID(row.ID))})
		stops = append(stops, platform.Choice{Label: split.Clip(fmt.Sprintf("Stop %d: %s", n, titleOf(row)), maxChoice), Value: haltID(row.ID)})
	}
	if out.Len() == 0 {
		return says("Nothing is running or waiting here.")
	}
	if n > maxStops {
		a.Buttons, a.Selects = nil, []platform.Select{{Value: platform.ButtonValue(platform.PressHalt, chosen), Hint: "Stop one of them", Choices: stops}}
	}
	a.Text = strings.TrimSpace(out.String())
	return a
}

// chosen replaces the conversation in the value of a menu: the choice names it.
const chosen = "chosen"

// haltID identifies a conversation on a button: the channel is where the button is pressed.
func haltID(thread chat.ThreadID) string { return thread.Thread() + "@" + thread.Agent() }

// halt ends a conversation's run and drops its waiting prompts.
func (b *Set) halt(ctx context.Context, in room.Channel, id string, by chat.Principal, manager bool) string {
	rows, err := b.hereMost(ctx, in, maxHere)
	if err != nil {
		return b.UserMessage(err)
	}
	for _, row := range rows {
		if haltID(row.ID) == id {
			return b.kill(ctx, row, by, manager)
		}
	}
	return "That conversation is no longer here."
}

func (b *Set) kill(ctx context.Context, row journal.Thread, by chat.Principal, manager bool) string {
	who := operation.Caller{Principal: by, Scopes: []operation.Scope{operation.Chat}, Here: row.ID.Transport() + ":" + row.ID.Place(), Manages: manager}
	did, err := operations.Abort.Call(ctx, b.Backend, who, operations.AbortRequest{ID: string(row.ID), All: true})
	switch {
	case err != nil:
		return b.UserMessage(err)
	case !did.Aborted:
		return "It had already ended: " + titleOf(row)
	default:
		return "Stopped: " + titleOf(row)
	}
}

func (b *Set) queued(ctx context.Context, o request) platform.Answer {
	rows, err := b.here(ctx, o.in)
	if err != nil {
		return says(b.UserMessage(err))
	}
	var out strings.Builder
	for _, row := range rows {
		if row.Waiting == 0 {
			continue
		}
		fmt.Fprintf(&out, "**%s** (%s): %s\n", titleOf(row), row.Agent, b.going(ctx, row))
		b.waitingIn(ctx, &out, row, "")
	}
	return says(cmp.Or(strings.TrimSpace(out.String()), "Nobody is waiting here."))
}

// waitingIn lists who waits for a conversation, by place.
func (b *Set) waitingIn(ctx context.Context, out *strings.Builder, row journal.Thread, indent string) {
	if row.Waiting == 0 {
		return
	}
	seqs, err := b.Backend.PendingPrompts(ctx, row.ID)
	if err != nil {
		return
	}
	for i, seq := range seqs {
		ev, err := b.Backend.EventNow(ctx, row.ID, seq)
		if err != nil {
			continue
		}
		who, words := b.asked(ev)
		fmt.Fprintf(out, "%splace %d: %s, since %s: %s\n", indent, i+1, who, mark.Ago(ev.At), mark.Line(b.Backend.Redact(words), 80))
	}
}

// asked returns who asked for something, and in which words.
func (b *Set) asked(ev chat.Event) (who, words string) {
	switch e := ev.Body.(type) {
	case chat.Received:
		return b.MentionPeople(e.Principal.String()), threadname.Plain(e.Blocks.Text())
	case chat.Steered:
		return b.MentionPeople(e.Principal.String()), threadname.Plain(e.Blocks.Text())
	default:
		return b.MentionPeople(ev.Who), ""
	}
}
