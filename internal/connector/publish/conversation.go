package publish

import (
	"context"
	"slices"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/render"
	"chorus/internal/room/threadname"
)

// conversation publishes one conversation as long as it is active. Its position in the journal only moves
// when nothing runs and nothing waits, so its state can always be rebuilt from
// there; rows that were already written are written again and do not change.
type conversation struct {
	*Publisher
	thread    chat.ThreadID
	view      *render.View
	from      int64 // the position in the store
	where     places
	desired   []journal.Desired
	reactions map[render.Reaction]bool // requested last
	shown     map[string]bool          // intermediate messages that have a row
	previews  map[string]preview       // the last preview of each active message
	typed     time.Time
	refreshed time.Time
	changed   bool // something live arrived since
	pending   bool // an event was applied, and its rows are not written yet

	mu   sync.Mutex
	asks []string // whose run is active; read by others
}

func (p *Publisher) conversation(thread chat.ThreadID) *conversation {
	return &conversation{Publisher: p, thread: thread, reactions: map[render.Reaction]bool{}, shown: map[string]bool{}, previews: map[string]preview{},
		where: newPlaces(p.transport, thread)}
}

func (c *conversation) run(ctx context.Context) error {
	var err error
	if c.thread.Transport() != c.transport {
		if c.ShownIn == nil {
			return nil
		}
		at, err := c.ShownIn(ctx, c.thread)
		if err != nil || at.Channel == "" {
			return err
		}
		c.where.elsewhere = at.Channel
	}
	if c.from, err = c.Backend.Reader(ctx, c.Reader(), c.thread); err != nil {
		return err
	}
	c.view = render.New(c.showOptions(c.thread))
	ctx, cancel := context.WithCancel(ctx)
	items := make(chan Item, 64)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(items)
		for item, err := range c.Backend.Watch(ctx, c.thread, c.from) {
			if err != nil {
				continue // the thread's error, or the store's: keep watching
			}
			select {
			case items <- item:
			case <-ctx.Done():
				return
			}
		}
	}()
	err = c.follow(ctx, items)
	cancel()
	<-ended
	return err
}

// follow takes items until there have been none for a while.
func (c *conversation) follow(ctx context.Context, items <-chan Item) error {
	idle := time.NewTimer(c.Idle)
	defer idle.Stop()
	beat := time.NewTicker(c.Preview)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case item, ok := <-items:
			if !ok {
				return nil
			}
			if err := c.take(ctx, item, len(items) == 0); err != nil {
				return err
			}
			idle.Reset(c.Idle)
		case now := <-beat.C:
			if err := c.refresh(ctx, now); err != nil {
				return err
			}
		case <-idle.C:
			if c.view.Idle() {
				return nil
			}
			idle.Reset(c.Idle) // the model thinks long, or a person is asked
		}
	}
}

// take applies one item. It writes rows of the outbox when no more items are ready, so that simultaneous items
// are one transaction; also if the last one is only a live piece.
func (c *conversation) take(ctx context.Context, item Item, last bool) error {
	if item.Live != nil {
		c.view.Live(item.Live)
		c.changed = true
	}
	if ev := item.Event; ev != nil && ev.Seq > c.view.Seq() {
		c.where.learn(*ev)
		if err := c.open(ctx, ev); err != nil {
			return err
		}
		c.view.Apply(*ev)
		c.note(*ev)
		c.want(ev.Seq)
		c.pending = true
	}
	if !last || !c.pending {
		return nil
	}
	return c.write(ctx)
}

// note records who asked for the active run, and shows at once that somebody is working.
func (c *conversation) note(ev chat.Event) {
	switch ev.Body.(type) {
	case chat.Took, chat.RunEnded:
		c.mu.Lock()
		c.asks = c.where.askers()
		c.mu.Unlock()
	}
}

// askedBy reports whether somebody asked for the active run.
func (c *conversation) askedBy(user string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.asks, user)
}

// want turns what an event shows into rows of the outbox. refresh handles temporary states
// of messages.
func (c *conversation) want(seq int64) {
	w := c.view.Wanted(time.Now())
	for _, m := range w.Messages {
		if !m.Final && m.Card == nil {
			continue
		}
		if m.Absent() && !c.shown[m.Key] && m.Final {
			// There may be a row of an earlier process: it is withdrawn as well.
			c.desired = append(c.desired, c.message(m, seq))
			continue
		}
		c.desired = append(c.desired, c.message(m, seq))
	}
	signs := map[render.Reaction]bool{}
	for _, r := range w.Reactions {
		signs[r] = true
		if !c.reactions[r] {
			c.desired = append(c.desired, c.reaction(r, seq, true))
		}
	}
	for r := range c.reactions {
		if !signs[r] && replaced(r, w.Reactions) {
			c.desired = append(c.desired, c.reaction(r, seq, false))
		}
	}
	c.reactions = signs
}

// replaced reports whether another reaction took this one's place; forgotten reactions stay.
func replaced(r render.Reaction, now []render.Reaction) bool {
	return slices.ContainsFunc(now, func(o render.Reaction) bool { return o.On == r.On && o.Key == r.Key })
}

// write stores the rows: with our position in the journal if nothing needs to be
// rebuilt, otherwise without.
func (c *conversation) write(ctx context.Context) error {
	desired := newest(c.desired)
	idle := c.view.Idle()
	var err error
	switch seq := c.view.Seq(); {
	case idle && seq > c.from:
		err = c.Backend.Plan(ctx, journal.Plan{Reader: c.Reader(), Thread: c.thread, From: c.from, UpTo: seq, Desired: desired})
		if err == nil {
			c.from = seq
		}
	case len(desired) > 0:
		err = c.Backend.SetDesired(ctx, desired...)
	}
	if err != nil {
		return err
	}
	c.desired, c.pending = nil, false
	if idle {
		c.view.Forget()
		c.where.forget()
		clear(c.shown)
		clear(c.previews)
	}
	for _, d := range desired {
		c.Outbox.Wake(d.Lane)
	}
	return nil
}

// newest keeps the last row for each key, in the order of the first: what would be
// replaced at once need not be shown.
func newest(list []journal.Desired) []journal.Desired {
	var out []journal.Desired
	for _, d := range list {
		i := slices.IndexFunc(out, func(o journal.Desired) bool { return o.Lane == d.Lane && o.Key == d.Key })
		if i < 0 {
			out = append(out, d)
			continue
		}
		out[i] = d
	}
	return out
}

// refresh keeps an active run visible: typing every few seconds, its message about once a
// second. An answer that is there by then needs neither.
func (c *conversation) refresh(ctx context.Context, now time.Time) error {
	if !c.where.placed() {
		return nil
	}
	w := c.view.Wanted(now)
	if typing := c.typing; w.Typing && typing != nil && now.Sub(c.typed) >= c.Typing {
		c.typed = now
		typing.ShowTyping(ctx, c.where.now())
	}
	if !c.changed && now.Sub(c.refreshed) < 5*c.Preview {
		return nil // only the clock has moved
	}
	c.changed, c.refreshed = false, now
	for _, m := range w.Messages {
		if m.Final || m.Card != nil || !c.caps.Edits {
			continue
		}
		d := c.message(m, c.view.Seq())
		if c.shown[m.Key] {
			if c.worthShowing(d) {
				c.Outbox.Preview(d.Lane, d.Key, d.Body)
			}
			continue
		}
		// The first one creates the message; later ones only update it.
		if err := c.Backend.SetDesired(ctx, d); err != nil {
			return err
		}
		c.shown[m.Key] = true
		c.Outbox.Wake(d.Lane)
	}
	return nil
}

// preview is the last shown content of a message, and how often it was shown.
type preview struct {
	body  string
	times int
}

// worthShowing reports whether a message has changed since it was shown. The same content is shown once more, because a preview may be lost, and then no
// more: a run can wait a day for a person.
func (c *conversation) worthShowing(d journal.Desired) bool {
	p := c.previews[d.Key]
	if p.body != string(d.Body) {
		p = preview{body: string(d.Body)}
	}
	p.times++
	c.previews[d.Key] = p
	return p.times <= 2
}

// open opens the platform's thread for an answer. After the first time it already
// exists.
func (c *conversation) open(ctx context.Context, ev *chat.Event) error {
	e, ok := ev.Body.(chat.Received)
	if !ok || !e.Prompt || e.Post == "" || e.Post != ev.PlatformID {
		return nil
	}
	if _, known := c.Platform.Known(e.Post); known || c.threads == nil {
		return nil
	}
	name := threadname.Of(c.Backend.Redact(e.Blocks.Text()))
	_, err := platform.CallWithin(ctx, c.Retry, c.CallWait, c.Platform.Answers, "open thread", func(ctx context.Context) (room.Channel, error) {
		return c.threads.OpenOn(ctx, e.Channel, e.Post, name)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		c.Log.Warn("could not open a thread", "event", "thread_not_opened", "message", ev.PlatformID, "error", err)
	}
	return nil
}
