package connector

import (
	"context"
	"slices"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room/render"
)

// reader is the name under which is stored how far conversations have been published. All
// bots of a platform share it: each conversation is published by one of them, and which one may change.
func (b *Bot) reader() string { return b.transport }

// sweepEvery is how long a conversation that moved unnoticed (in another process, at a
// restart) stays unpublished.
const sweepEvery = 2 * time.Second

// publishAll looks for conversations that have moved and are not published, until ctx ends.
// Where nothing was found and nothing was written since, there is nothing to look for.
func (b *Bot) publishAll(ctx context.Context) {
	var seen [2]int64
	own := &sweep{bot: b, transport: b.transport}
	tasks := &sweep{bot: b, transport: chat.WorkTransport}
	done := false
	for {
		if b.Self().ID != "" { // before that nothing could be posted
			here, others, err := b.Backend.Writes(ctx)
			if now := [2]int64{here, others}; err != nil || !done || now != seen {
				done, seen = own.look(ctx), now
				done = (b.ShownIn == nil || tasks.look(ctx)) && done
			}
		}
		if !platform.Sleep(ctx, sweepEvery) {
			return
		}
	}
}

// maxBehind bounds how many are woken by one look.
const maxBehind = 1000

// sweep knows up to where the journal has been looked at. The first look is at all
// conversations, every other one at those that have changed since, or were behind then.
type sweep struct {
	bot       *Bot
	transport string
	mark      int64
	behind    []chat.ThreadID
}

// Shown is where a conversation of another transport is shown: in a channel, not yet anywhere, or never.
type Shown struct {
	Channel string
	Later   bool // without a channel: there will be one
}

// look wakes what is behind; true: nothing of ours was.
func (s *sweep) look(ctx context.Context) bool {
	b := s.bot
	list, mark, err := b.Backend.BehindSince(ctx, b.reader(), s.transport, s.mark, s.behind)
	if err != nil {
		if ctx.Err() == nil {
			b.Log.Warn("could not look for what is to be published", "event", "sweep_failed", "error", err)
		}
		return false
	}
	// What another bot serves is that one's, as long as this program runs.
	s.mark, s.behind = mark, slices.DeleteFunc(list, func(t chat.ThreadID) bool { return !b.Backend.Serves(b.Name, t) || !s.shown(ctx, t) })
	for _, thread := range s.behind[:min(len(s.behind), maxBehind)] {
		b.wake(ctx, thread)
	}
	return len(s.behind) == 0
}

// shown reports whether a conversation has a place on this platform, or will have one.
func (s *sweep) shown(ctx context.Context, thread chat.ThreadID) bool {
	if s.transport == s.bot.transport {
		return true
	}
	at, err := s.bot.ShownIn(ctx, thread)
	if err != nil && ctx.Err() == nil {
		s.bot.Log.Warn("could not find where a task is shown; trying again", "event", "task_place_failed", "thread", thread, "error", err)
	}
	return err != nil || at.Channel != "" || at.Later
}

// publisher shows one conversation as long as it moves. Its position in the journal moves
// only when nothing runs and nothing waits, so what it knows can always be folded again from
// there; rows that were written before are written again and do not change.
type publisher struct {
	bot       *Bot
	thread    chat.ThreadID
	view      *render.View
	from      int64 // the position that the store knows
	where     places
	desired   []journal.Desired
	reactions map[render.Reaction]bool // asked for last
	shown     map[string]bool          // messages on the way for which there is a row
	previews  map[string]preview       // the last of each message that is on
	typed     time.Time
	refreshed time.Time
	changed   bool // something live came since
	pending   bool // an event was folded in, and what follows from it is not written yet

	mu   sync.Mutex
	asks []string // whose run is on; read by others
}

// wake publishes a conversation, unless that is being done already. It ends with the bot.
func (b *Bot) wake(ctx context.Context, thread chat.ThreadID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.publishers[thread] != nil || b.running == nil || ctx.Err() != nil {
		return
	}
	ctx = b.running
	t := &publisher{bot: b, thread: thread, reactions: map[render.Reaction]bool{}, shown: map[string]bool{}, previews: map[string]preview{}, where: newPlaces(b.transport, thread)}
	b.publishers[thread] = t
	b.work.Go(func() {
		err := t.run(ctx)
		b.mu.Lock()
		delete(b.publishers, thread)
		b.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			b.Log.Warn("a conversation could not be published; trying again", "event", "publish_failed", "thread", thread, "error", err)
		}
	})
}

func (t *publisher) run(ctx context.Context) error {
	var err error
	if t.thread.Transport() != t.bot.transport {
		if t.bot.ShownIn == nil {
			return nil
		}
		at, err := t.bot.ShownIn(ctx, t.thread)
		if err != nil || at.Channel == "" {
			return err
		}
		t.where.elsewhere = at.Channel
	}
	if t.from, err = t.bot.Backend.Reader(ctx, t.bot.reader(), t.thread); err != nil {
		return err
	}
	t.view = render.New(t.bot.showOptions(t.thread))
	ctx, cancel := context.WithCancel(ctx)
	items := make(chan Item, 64)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(items)
		for item, err := range t.bot.Backend.Watch(ctx, t.thread, t.from) {
			if err != nil {
				continue // the thread's trouble, or the store's: watching goes on
			}
			select {
			case items <- item:
			case <-ctx.Done():
				return
			}
		}
	}()
	err = t.follow(ctx, items)
	cancel()
	<-ended
	return err
}

// follow takes what comes until nothing has for a while.
func (t *publisher) follow(ctx context.Context, items <-chan Item) error {
	idle := time.NewTimer(t.bot.Idle)
	defer idle.Stop()
	beat := time.NewTicker(t.bot.Preview)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case item, ok := <-items:
			if !ok {
				return nil
			}
			if err := t.take(ctx, item, len(items) == 0); err != nil {
				return err
			}
			idle.Reset(t.bot.Idle)
		case now := <-beat.C:
			if err := t.refresh(ctx, now); err != nil {
				return err
			}
		case <-idle.C:
			if t.view.Idle() {
				return nil
			}
			idle.Reset(t.bot.Idle) // somebody thinks long, or is asked
		}
	}
}

// take folds one item in. Rows of the outbox are written when nothing more lies ready, so that what
// came at once is one transaction; also when the last that came is only a live piece.
func (t *publisher) take(ctx context.Context, item Item, last bool) error {
	if item.Live != nil {
		t.view.Live(item.Live)
		t.changed = true
	}
	if ev := item.Event; ev != nil && ev.Seq > t.view.Seq() {
		t.where.learn(*ev)
		if err := t.open(ctx, ev); err != nil {
			return err
		}
		t.view.Apply(*ev)
		t.note(*ev)
		t.want(ev.Seq)
		t.pending = true
	}
	if !last || !t.pending {
		return nil
	}
	return t.write(ctx)
}

// note keeps who asked for what is on, and shows at once that somebody is at work.
func (t *publisher) note(ev chat.Event) {
	switch ev.Body.(type) {
	case chat.Took, chat.RunEnded:
		t.mu.Lock()
		t.asks = t.where.askers()
		t.mu.Unlock()
	}
}

// askedBy reports whether somebody asked for the run that is on.
func (t *publisher) askedBy(user string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.asks, user)
}

// want turns what is to be shown after an event into rows of the outbox. Passing states of messages
// are left to refresh.
func (t *publisher) want(seq int64) {
	w := t.view.Wanted(time.Now())
	for _, m := range w.Messages {
		if !m.Final && m.Card == nil {
			continue
		}
		if m.Absent() && !t.shown[m.Key] && m.Final {
			// There may be a row of an earlier process: it is withdrawn as well.
			t.desired = append(t.desired, t.message(m, seq))
			continue
		}
		t.desired = append(t.desired, t.message(m, seq))
	}
	signs := map[render.Reaction]bool{}
	for _, r := range w.Reactions {
		signs[r] = true
		if !t.reactions[r] {
			t.desired = append(t.desired, t.reaction(r, seq, true))
		}
	}
	for r := range t.reactions {
		if !signs[r] && replaced(r, w.Reactions) {
			t.desired = append(t.desired, t.reaction(r, seq, false))
		}
	}
	t.reactions = signs
}

// replaced reports whether another reaction took this one's place; what was forgotten stays.
func replaced(r render.Reaction, now []render.Reaction) bool {
	return slices.ContainsFunc(now, func(o render.Reaction) bool { return o.On == r.On && o.Key == r.Key })
}

// write brings the rows to the store: with our position in the journal where nothing is
// left to fold again, otherwise without.
func (t *publisher) write(ctx context.Context) error {
	desired := newest(t.desired)
	idle := t.view.Idle()
	var err error
	switch seq := t.view.Seq(); {
	case idle && seq > t.from:
		err = t.bot.Backend.Plan(ctx, journal.Plan{Reader: t.bot.reader(), Thread: t.thread, From: t.from, UpTo: seq, Desired: desired})
		if err == nil {
			t.from = seq
		}
	case len(desired) > 0:
		err = t.bot.Backend.SetDesired(ctx, desired...)
	}
	if err != nil {
		return err
	}
	t.desired, t.pending = nil, false
	if idle {
		t.view.Forget()
		t.where.forget()
		clear(t.shown)
		clear(t.previews)
	}
	for _, d := range desired {
		t.bot.outbox.Wake(d.Lane)
	}
	return nil
}

// newest keeps the last row for each thing, in the order of the first: what would be
// shown for no time at all need not be.
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

// refresh keeps a run that is on visible: typing every few seconds, its message about once a
// second. An answer that is there by then needs neither.
func (t *publisher) refresh(ctx context.Context, now time.Time) error {
	if !t.where.placed() {
		return nil
	}
	w := t.view.Wanted(now)
	if typing := t.bot.can.typing; w.Typing && typing != nil && now.Sub(t.typed) >= t.bot.Typing {
		t.typed = now
		typing.ShowTyping(ctx, t.where.now())
	}
	if !t.changed && now.Sub(t.refreshed) < 5*t.bot.Preview {
		return nil // only the clock has moved
	}
	t.changed, t.refreshed = false, now
	for _, m := range w.Messages {
		if m.Final || m.Card != nil || !t.bot.caps.Edits {
			continue
		}
		d := t.message(m, t.view.Seq())
		if t.shown[m.Key] {
			if t.worthShowing(d) {
				t.bot.outbox.Preview(d.Lane, d.Key, d.Body)
			}
			continue
		}
		// The first one makes the message; those that follow are only shown.
		if err := t.bot.Backend.SetDesired(ctx, d); err != nil {
			return err
		}
		t.shown[m.Key] = true
		t.bot.outbox.Wake(d.Lane)
	}
	return nil
}

// preview is what a message was last shown with, and how often.
type preview struct {
	body  string
	times int
}

// worthShowing reports whether a message changed since it was shown. The same is shown once more, as a preview may be lost, and then no
// more: a run can wait for a person for a day.
func (t *publisher) worthShowing(d journal.Desired) bool {
	p := t.previews[d.Key]
	if p.body != string(d.Body) {
		p = preview{body: string(d.Body)}
	}
	p.times++
	t.previews[d.Key] = p
	return p.times <= 2
}
