// Package workcards shows the tasks of projects on a chat platform. In the linked channel of a project every active
// task has a card, which is edited as the task moves and has buttons for the currently legal actions. A thread below the card shows what
// its worker does. People who are needed are called by a short message that answers the card. A thread that takes notes starts with their list.
//
// It promises that a card is created once and a call is posted once, whenever the process dies: what is wanted is written to the
// outbox under its own name before the reader of the events moves on. A button does what the operation of its name does, with
// the rights of the person who presses it, and says so if it is no longer legal.
package workcards

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mark"
	"chorus/internal/work"
	"chorus/internal/workview"
)

// Work is the queue as cards read it.
type Work interface {
	Events(context.Context, work.EventFilter) ([]work.Event, error)
	Task(ctx context.Context, id string) (work.Task, error)
	Project(ctx context.Context, id string) (work.Project, error)
	List(context.Context, work.Filter) ([]work.Task, error)
	Results(ctx context.Context, task string) ([]work.Result, error)
	Needs(ctx context.Context, id string) ([]work.Task, error)
	Dependents(ctx context.Context, id string) ([]work.Task, error)
	// OfChannel finds the project of a channel; ErrUnknown if there is none.
	OfChannel(ctx context.Context, channel string) (work.Project, error)
	SpentBy(ctx context.Context, since time.Time) ([]work.Spent, error)
	// ChangeProject changes a project and records the event.
	ChangeProject(ctx context.Context, id string, change func(*work.Project) (work.Event, error)) (work.Project, error)
}

// Options configure cards.
type Options struct {
	Work Work
	// Caller is a person of the platform with their scopes.
	Caller func(by room.Author, in room.Channel, absent bool) operation.Caller
	Every  time.Duration // between two looks for events; 0: a second
}

// Cards are the cards of one bot.
type Cards struct {
	*connector.Bot
	o       Options
	threads platform.Threads // nil: the platform has none
	woken   chan struct{}
	closed  places // channels that cannot be reached, and cards without a thread
	opened  places // cards that have a thread
}

// New makes the cards of a bot. They show nothing before Run.
func New(b *connector.Bot, o Options) *Cards {
	o.Every = cmp.Or(o.Every, time.Second)
	c := &Cards{Bot: b, o: o, woken: make(chan struct{}, 1)}
	c.threads, _ = b.Platform.(platform.Threads)
	return c
}

// Run shows events until ctx ends.
func (c *Cards) Run(ctx context.Context) {
	if _, err := c.position(ctx); err != nil && ctx.Err() == nil { // later events are shown, even those before there is a connection
		c.Log.Warn("it is not known up to where tasks are shown; trying again", "event", "work_cards_failed", "error", err)
	}
	timer := time.NewTicker(c.o.Every)
	defer timer.Stop()
	finished := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.woken:
		}
		if c.Self().ID == "" {
			continue // before that nothing could be posted
		}
		err := error(nil)
		if !finished {
			err = c.finishChannels(ctx)
			finished = err == nil
		}
		if err = cmp.Or(err, c.look(ctx)); err != nil && ctx.Err() == nil && !errors.Is(err, errNoPostYet) {
			c.Log.Warn("the cards of tasks could not be brought up to date; trying again", "event", "work_cards_failed", "error", err)
		}
	}
}

// wake makes the next look happen now.
func (c *Cards) wake() { await.Notify(c.woken) }

// positions is the kind of memo for the last event with cards.
const positions = "work-cards"

// maxEvents is how many events one look takes.
const maxEvents = 200

// look shows the events since the last look. It first writes the rows, then the position: after a crash in between
// the same rows are written again and change nothing.
func (c *Cards) look(ctx context.Context) error {
	for {
		from, err := c.position(ctx)
		if err != nil {
			return err
		}
		events, err := c.o.Work.Events(ctx, work.EventFilter{Forward: true, After: from, Limit: maxEvents})
		if err != nil || len(events) == 0 {
			return err
		}
		if err := c.show(ctx, events); err != nil {
			return err
		}
		if err := c.moveTo(ctx, events[len(events)-1].ID); err != nil {
			return err
		}
	}
}

func (c *Cards) key() string { return c.Transport() + "/" + c.Name }

func (c *Cards) moveTo(ctx context.Context, id int64) error {
	return c.Backend.Remember(ctx, positions, c.key(), strconv.AppendInt(nil, id, 10))
}

// position is the last event with cards. A bot that sees a queue for the first time starts with the next event.
func (c *Cards) position(ctx context.Context) (int64, error) {
	kept, err := c.Backend.Recall(ctx, positions, c.key())
	if err != nil {
		return 0, err
	}
	if id, err := strconv.ParseInt(string(kept), 10, 64); err == nil {
		return id, nil
	}
	newest, err := c.o.Work.Events(ctx, work.EventFilter{Limit: 1})
	if err != nil {
		return 0, err
	}
	id := int64(0)
	if len(newest) > 0 {
		id = newest[0].ID
	}
	return id, c.moveTo(ctx, id)
}

// show writes what events change: the cards of their tasks in their current state, and the calls.
func (c *Cards) show(ctx context.Context, events []work.Event) error {
	last := map[string]int64{}
	var order []string
	for _, e := range events {
		if e.Task != "" {
			if last[e.Task] == 0 {
				order = append(order, e.Task)
			}
			last[e.Task] = e.ID
		}
	}
	projects, notes := map[string]bool{}, map[string]int64{}
	for _, e := range events {
		if strings.HasPrefix(e.Type, "note.") {
			notes[e.Project] = e.ID
		}
		if err := c.aboutProject(ctx, e); err != nil {
			return err
		}
		projects[e.Project] = projects[e.Project] || e.From == work.InProgress // an attempt ended, so something was spent
	}
	for _, id := range order {
		if err := c.showTask(ctx, id, last[id], events); err != nil {
			return err
		}
	}
	for id, spent := range projects {
		if !spent {
			continue
		}
		if err := c.showBudget(ctx, id); err != nil {
			return err
		}
	}
	for id, seq := range notes {
		if err := c.showNotes(ctx, id, seq); err != nil {
			return err
		}
	}
	return nil
}

// Key is the key of a task's card in its lane.
func Key(task string) string { return "task/" + task }

// showTask updates the card of a task and calls the people whom its events need.
func (c *Cards) showTask(ctx context.Context, id string, seq int64, events []work.Event) error {
	t, err := c.o.Work.Task(ctx, id)
	if errors.Is(err, journal.ErrUnknown) {
		return c.showGone(ctx, id, seq, events)
	}
	if err != nil || !c.Backend.Serves(c.Name, t.Thread) {
		return err
	}
	channel, err := c.place(ctx, t)
	if err != nil || channel == "" {
		return err
	}
	lane := c.Lane(channel)
	row, err := c.Backend.Outgoing(ctx, lane, Key(id))
	there := err == nil
	if err != nil && !errors.Is(err, journal.ErrUnknown) {
		return err
	}
	if !there && !workview.Visible(t.State) {
		return nil
	}
	f, err := c.facts(ctx, t, row.ID)
	if err != nil {
		return err
	}
	desired, later := []journal.Desired{c.card(lane, t, workview.Of(f), seq)}, error(nil)
	for _, e := range events {
		if e.Task != id {
			continue
		}
		text, ok := workview.Call(e, f)
		if !ok || !current(e, t) {
			continue
		}
		switch {
		case !c.isBoard(channel):
			desired = append(desired, c.call(lane, t, text, e.ID, row.ID))
		case row.ID != "":
			desired = append(desired, c.call(c.Lane(row.ID), t, text, e.ID, ""))
		case row.State != journal.Failed && time.Since(e.At) < callWithin:
			later = errNoPostYet
		}
	}
	return cmp.Or(c.SetDesired(ctx, desired...), later)
}

// refresh updates an outdated card that somebody saw.
func (c *Cards) refresh(ctx context.Context, id string) {
	seq, err := c.position(ctx)
	if err == nil {
		err = c.showTask(ctx, id, seq, nil)
	}
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("a card could not be brought up to date", "event", "work_cards_failed", "task", id, "error", err)
	}
}

// current reports whether a task is still where an event put it: finished tasks need nobody.
func current(e work.Event, t work.Task) bool { return e.To == "" || e.To == t.State }

// panels are the looks of cards.
var panels = map[workview.Tone]platform.Panel{workview.Quiet: platform.PanelOver, workview.Busy: platform.PanelWork, workview.Asks: platform.PanelAsk,
	workview.Good: platform.PanelYes, workview.Bad: platform.PanelNo}

// card is the row of a card.
func (c *Cards) card(lane journal.Lane, t work.Task, card workview.Card, seq int64) journal.Desired {
	p := platform.Post{Text: c.Backend.Redact(card.Text)}
	if c.isBoard(lane.Channel) {
		p.Entry = c.entry(t.Title, card.Label)
	}
	if c.Caps().MaxPanel > 0 {
		p.Panel = panels[card.Tone]
	}
	for _, a := range card.Actions {
		if c.Caps().Buttons && (!a.Asks() || c.Caps().Forms) {
			p.More = append(p.More, button(t, a))
		}
	}
	return journal.Desired{Lane: lane, Key: Key(t.ID), Thread: t.Thread, Seq: seq, Body: p.Body(), Final: t.State == work.Completed}
}

// call is the row of a message that calls the people a task belongs to.
func (c *Cards) call(lane journal.Lane, t work.Task, text string, event int64, card string) journal.Desired {
	p := platform.Post{ReplyTo: card}
	if string(t.Owner.Kind) == c.Transport() && t.Owner.ID != "" {
		text, p.Notify = mark.Person(t.Owner.ID)+" "+text, []string{t.Owner.ID}
	}
	p.Text = c.Backend.Redact(text)
	return journal.Desired{Lane: lane, Key: Key(t.ID) + "/call/" + strconv.FormatInt(event, 10), Thread: t.Thread, Seq: event, Body: p.Body(), Final: true}
}

// facts collects the content of a card.
func (c *Cards) facts(ctx context.Context, t work.Task, card string) (workview.Facts, error) {
	f := workview.Facts{Task: t}
	if in, known := c.Platform.Known(card); card != "" && known && in.Parent != "" {
		f.Where = mark.Channel(card)
	}
	var err error
	if t.State == work.AwaitingApproval || t.State == work.AwaitingPlanApproval {
		p, err := c.o.Work.Project(ctx, t.Project)
		if err != nil {
			return f, err
		}
		f.May = c.approvers(p)
	}
	switch t.State {
	case work.Completed, work.AwaitingApproval:
		var list []work.Result
		if list, err = c.o.Work.Results(ctx, t.ID); len(list) > 0 {
			f.Result = &list[0]
		}
	case work.Blocked:
		f.Stuck, err = work.Stuck(t.ID, func(id string) ([]work.Task, error) { return c.o.Work.Dependents(ctx, id) })
	case work.Defined:
		f.Needs, err = c.o.Work.Needs(ctx, t.ID)
	}
	return f, err
}

// approvers describes the people who may approve in a project.
func (c *Cards) approvers(p work.Project) (out []string) {
	for _, a := range p.Approvers {
		kind, name, _ := strings.Cut(a, ":")
		switch {
		case a == "owner":
			a = c.MentionPeople(p.Owner.String())
		case a == "local":
			a = "the people who run this Chorus"
		case kind == "role":
			a = "those with the role " + name
		default:
			a = c.MentionPeople(a)
		}
		out = append(out, a)
	}
	return out
}

// showGone marks the card of a deleted task.
func (c *Cards) showGone(ctx context.Context, id string, seq int64, events []work.Event) error {
	for _, e := range events {
		if e.Task != id || e.Type != "task.deleted" {
			continue
		}
		channel, err := c.channel(ctx, e.Project)
		if err != nil || channel == "" {
			return err
		}
		lane := c.Lane(channel)
		row, err := c.Backend.Outgoing(ctx, lane, Key(id))
		if err != nil {
			if errors.Is(err, journal.ErrUnknown) {
				return nil
			}
			return err
		}
		d := c.card(lane, work.Task{ID: id, Thread: row.Thread, Title: e.Text}, workview.Gone(id, e.Text, c.MentionPeople(e.By)), seq)
		d.Final = true
		return c.SetDesired(ctx, d)
	}
	return nil
}

// aboutProject shows an event of a project as a whole.
func (c *Cards) aboutProject(ctx context.Context, e work.Event) error {
	switch {
	case e.Type == "project.created" || e.Type == "project.deleted":
		return c.finishChannels(ctx)
	case e.Type != "project.channel" || e.Text == "":
		return nil
	}
	// Somebody who links a channel sees the current tasks there.
	for _, state := range work.States() {
		if !workview.Visible(state) || state == work.Completed {
			continue
		}
		list, err := c.o.Work.List(ctx, work.Filter{Project: e.Project, State: state, All: true, Limit: maxLinked})
		if err != nil {
			return err
		}
		for _, t := range list {
			if err := c.showTask(ctx, t.ID, e.ID, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxLinked is how many tasks of each state are shown when a channel is linked.
const maxLinked = 10

// place is where a task is shown: in the channel of its project, otherwise where it was asked for; "": nowhere.
func (c *Cards) place(ctx context.Context, t work.Task) (string, error) {
	channel, err := c.channel(ctx, t.Project)
	if err != nil || channel != "" || t.Origin.Transport() != c.Transport() {
		return channel, err
	}
	_, _, in := room.PlaceParts(t.Origin.Place())
	if c.closed.is(in) {
		return "", nil
	}
	if _, known := c.Platform.Known(in); known {
		return in, nil
	}
	if _, err = c.Platform.Channel(ctx, in); err != nil && !platform.Passing(err) {
		c.closed.add(in)
		return "", nil
	}
	return in, err
}

// channel is where this bot shows a project; "": nowhere. A channel that no longer exists is unlinked.
func (c *Cards) channel(ctx context.Context, project string) (string, error) {
	p, err := c.o.Work.Project(ctx, project)
	if errors.Is(err, journal.ErrUnknown) {
		return "", nil
	}
	if err != nil || p.Channel == "" || c.closed.is(p.Channel) {
		return "", err
	}
	if _, known := c.Platform.Known(p.Channel); known {
		return p.Channel, nil
	}
	_, err = c.Platform.Channel(ctx, p.Channel)
	switch {
	case err == nil:
		return p.Channel, nil
	case platform.Is(err, outbox.Gone) || platform.Is(err, outbox.Nowhere):
		return "", c.unlink(ctx, p)
	case platform.Passing(err):
		return "", err
	}
	c.closed.add(p.Channel)
	c.Log.Warn("the channel of a project cannot be reached, so its tasks are not shown", "event", "project_channel", "project", project, "channel", p.Channel, "error", err)
	return "", nil
}

// unlink removes a deleted channel from its project.
func (c *Cards) unlink(ctx context.Context, p work.Project) error {
	_, err := c.o.Work.ChangeProject(ctx, p.ID, func(now *work.Project) (work.Event, error) {
		if now.Channel == p.Channel {
			now.Channel = ""
		}
		return work.Event{Type: "project.channel_gone", Text: p.Channel}, nil
	})
	c.Log.Info("a project's channel is gone; it has none now", "event", "project_channel_gone", "project", p.ID, "channel", p.Channel)
	return err
}
