package connector

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// channelsListed stores which channels exist and reads each of them from
// where we were. Live events are queued after this, so the order is kept.
func (b *Bot) channelsListed(ctx context.Context, e platform.Listed) error {
	cursors, err := b.Backend.Cursors(ctx, b.transport, b.Name)
	if err != nil {
		return err
	}
	latest, wait := b.latestOf(e.Channels, cursors), b.CallWait
	for _, c := range e.Channels {
		cursor, seen := cursors[c.ID]
		if !seen {
			if cursor, err = b.firstRead(ctx, c, latest); err == nil {
				err = b.moveCursor(ctx, c.ID, cursor)
			}
			if err != nil {
				return err
			}
		}
		if !b.Platform.Older(cursor, c.Newest) {
			continue
		}
		if err := b.readOn(ctx, c.ID, &wait); err != nil {
			return err
		}
	}
	b.NamesChanged()
	if !e.Complete {
		return nil
	}
	b.mu.Lock()
	b.listed = true
	b.mu.Unlock()
	return b.unlisted(ctx)
}

// maxUnlisted limits how many channels are read that the platform has not listed: archived
// threads are among them, which can be thousands without news.
const maxUnlisted = 50

// unlisted reads channels that the platform does not list: direct messages.
func (b *Bot) unlisted(ctx context.Context) error {
	cursors, err := b.Backend.Cursors(ctx, b.transport, b.Name)
	if err != nil {
		return err
	}
	for id := range cursors {
		if _, ok := b.Platform.Known(id); ok {
			delete(cursors, id)
		}
	}
	b.compareSoon(ctx)
	return b.catchUp(ctx, b.newestCursors(cursors, maxUnlisted))
}

// opened stores a channel that was created while we are connected: it is read from its beginning.
func (b *Bot) opened(ctx context.Context, c room.Channel) error {
	// A thread has the id of the message it was opened on, which is in another channel.
	return b.beginAt(ctx, c.ID, b.Platform.Before(c.ID))
}

// touch records that there is a message in a channel, so that it is read again soon. The
// first message of a channel that was never read is after its cursor.
func (b *Bot) touch(ctx context.Context, channel, message string) error {
	b.mu.Lock()
	_, known := b.active[channel]
	if !known {
		b.active[channel] = time.Now()
	}
	b.mu.Unlock()
	if known {
		return nil
	}
	return b.beginAt(ctx, channel, b.Platform.Before(message))
}

// beginAt sets a channel's first cursor.
func (b *Bot) beginAt(ctx context.Context, channel, at string) error {
	cursor, err := b.Backend.Cursor(ctx, b.Lane(channel))
	if err != nil || cursor != "" {
		return err
	}
	return b.moveCursor(ctx, channel, at)
}

// moveCursor records how far a channel was read. It never moves back.
func (b *Bot) moveCursor(ctx context.Context, channel, to string) error {
	lane := b.Lane(channel)
	for {
		from, err := b.Backend.Cursor(ctx, lane)
		if err != nil || from != "" && !b.Platform.Older(from, to) {
			return err
		}
		moved, err := b.Backend.MoveCursor(ctx, lane, from, to)
		if err != nil || moved {
			return err
		}
	}
}

// activeChannels are channels with messages since they were last read.
func (b *Bot) activeChannels() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.active))
}

func (b *Bot) catchUp(ctx context.Context, channels []string) error {
	wait := b.CallWait
	for _, id := range channels {
		if err := b.readOn(ctx, id, &wait); err != nil {
			return err
		}
	}
	return nil
}

// readNews reads a channel's history from its cursor on, takes new messages, and moves the
// cursor. It ignores a channel that is gone, or hidden from us. It counts messages that the
// platform should have reported before.
func (b *Bot) readNews(ctx context.Context, channel string, wait time.Duration) (missed int, err error) {
	if b.can.history == nil {
		b.upToDate(channel)
		return 0, nil
	}
	lane := b.Lane(channel)
	// A reply to a message that we were just posting must find its thread.
	if err := b.settled(ctx, lane); err != nil {
		return 0, err
	}
	for {
		cursor, err := b.Backend.Cursor(ctx, lane)
		if err != nil || cursor == "" {
			return missed, err
		}
		news, err := callWithin(ctx, b, wait, "history", func(ctx context.Context) (page, error) {
			list, more, err := b.can.history.ReadAfter(ctx, channel, cursor)
			return page{list, more}, err
		})
		if platform.Closed(err) {
			b.Log.Info("a channel cannot be read any more", "event", "channel_closed", "channel", channel, "error", err)
			b.upToDate(channel)
			if platform.Is(err, outbox.Nowhere) {
				return missed, b.vanished(ctx, channel)
			}
			return missed, nil
		}
		if err != nil {
			return missed, err
		}
		n, err := b.handlePage(ctx, news.list)
		if missed += n; err != nil {
			return missed, err
		}
		if n := len(news.list); n > 0 {
			if err := b.moveCursor(ctx, channel, news.list[n-1].ID); err != nil {
				return missed, err
			}
		}
		if !news.more {
			b.upToDate(channel)
			return missed, nil
		}
	}
}

// handlePage takes a page of a channel's history as one batch, and counts messages that the
// platform should have reported before.
func (b *Bot) handlePage(ctx context.Context, list []room.Message) (missed int, err error) {
	w := &waking{bot: b}
	defer w.up(ctx)
	members := map[string]room.Author{}
	for _, m := range list {
		if m.Author, err = b.withRoles(ctx, m, members); err != nil {
			return missed, err
		}
		news, err := b.message(ctx, m, w)
		if err != nil {
			return missed, err
		}
		if news && time.Since(m.At) > b.Grace {
			missed++
		}
	}
	return missed, nil
}

// withRoles is the author of a message in a channel's history, with their roles: without
// them they could do less than with a live message. Results are remembered
// for the rest of the page.
func (b *Bot) withRoles(ctx context.Context, m room.Message, asked map[string]room.Author) (room.Author, error) {
	if m.Author.Member || m.Author.Bot || m.Author.Webhook != "" || m.In.Guild == "" || m.In.Guild == room.Direct {
		return m.Author, nil
	}
	if who, ok := asked[m.Author.ID]; ok {
		return who, nil
	}
	received, err := b.Backend.Places(ctx, b.transport, m.ID)
	if err != nil || len(received) > 0 {
		return m.Author, err
	}
	who, err := callWithin(ctx, b, b.CallWait, "member", func(ctx context.Context) (room.Author, error) {
		return b.Platform.Member(ctx, m.In.Guild, m.Author)
	})
	if ctx.Err() != nil {
		return m.Author, ctx.Err()
	}
	if err != nil {
		who = m.Author // not available now: without roles they have everybody's rights
	}
	asked[m.Author.ID] = who
	return who, nil
}

// settleTime is how long a channel's history waits for messages of ours whose outcome is
// unknown. If one cannot be settled, because the platform fails on that channel, we
// must still read all others.
const settleTime = 10 * time.Second

func (b *Bot) settled(ctx context.Context, lane journal.Lane) error {
	within, cancel := context.WithTimeout(ctx, min(settleTime, b.CallWait))
	defer cancel()
	err := b.outbox.Settled(within, lane)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		b.Log.Warn("it is not known whether a message of ours was posted; reading on all the same", "event", "unsettled", "channel", lane.Channel)
		return nil
	}
	return err
}

func (b *Bot) upToDate(channel string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.active, channel)
}

// recheck reads channels again some minutes after a message. If it finds a message
// for the first time, the connection has failed silently and is replaced.
func (b *Bot) recheck(ctx context.Context) {
	for await.For(ctx, b.Recheck) {
		b.prune(ctx)
		b.removeAll(ctx)
		if b.Self().ID == "" {
			continue // there was no connection yet: nobody knows whom a mention is for
		}
		missed := 0
		for _, channel := range b.watched(ctx) {
			n, err := b.readNews(ctx, channel, b.CallWait)
			if err != nil && ctx.Err() == nil {
				b.Log.Warn("a channel could not be read", "event", "recheck_failed", "channel", channel, "error", err)
			}
			missed += n
		}
		if missed > 0 && ctx.Err() == nil && b.can.reconnect != nil {
			b.Log.Warn("the connection did not report messages; making a new one", "event", "deaf", "missed", missed)
			b.can.reconnect.Reconnect()
		}
	}
}

// deliveredFor is how long delivered rows of the outbox are kept. They are only
// for people who look into the outbox.
const deliveredFor = 7 * 24 * time.Hour

func (b *Bot) prune(ctx context.Context) {
	if _, err := b.Backend.PruneOutbox(ctx, b.transport, b.Name, b.transport, time.Now().Add(-deliveredFor)); err != nil && ctx.Err() == nil {
		b.Log.Warn("the outbox could not be pruned", "event", "prune_failed", "error", err)
	}
}

// maxWatched limits how many idle channels a recheck reads, the newest cursors first.
const maxWatched = 20

// watched are the channels that a recheck reads: active ones, and those with the
// latest messages, because a silent connection makes no channel active.
func (b *Bot) watched(ctx context.Context) []string {
	out := b.activeChannels()
	cursors, err := b.Backend.Cursors(ctx, b.transport, b.Name)
	if err != nil {
		return out
	}
	for _, id := range out {
		delete(cursors, id)
	}
	b.mu.Lock()
	listed := b.listed
	b.mu.Unlock()
	if !listed {
		// A channel that the platform has not listed yet may belong to a guild that it is about to list, with its roles.
		maps.DeleteFunc(cursors, func(id, _ string) bool { _, ok := b.Platform.Known(id); return !ok })
	}
	return append(out, b.newestCursors(cursors, maxWatched)...)
}

// newestCursors are the most recently read channels, newest first.
func (b *Bot) newestCursors(cursors map[string]string, limit int) []string {
	list := slices.SortedFunc(maps.Keys(cursors), func(x, y string) int {
		switch {
		case b.Platform.Older(cursors[y], cursors[x]):
			return -1
		case b.Platform.Older(cursors[x], cursors[y]):
			return 1
		default:
			return strings.Compare(x, y)
		}
	})
	return list[:min(len(list), limit)]
}

// isGone reports whether the error means that a message no longer exists.
func isGone(err error) bool { return platform.Is(err, outbox.Gone) }

// firstRead is the position from which a channel without a cursor is read. Nobody expects
// an answer to messages from before we came. But a channel that was created while we were away,
// in a guild that we know, is read from its beginning, as if we had seen its creation. So is
// a thread on a message that we received: its answer is in there.
func (b *Bot) firstRead(ctx context.Context, c platform.Listing, latest string) (string, error) {
	if latest != "" && c.Made != "" && b.Platform.Older(latest, c.Made) {
		return b.Platform.Before(c.ID), nil
	}
	if c.Parent != "" {
		received, err := b.Backend.Places(ctx, b.transport, c.ID)
		if err != nil {
			return "", err
		}
		if len(received) > 0 {
			return b.Platform.Before(c.ID), nil
		}
	}
	return c.Newest, nil
}

// latestOf is the newest message that was read in any of the channels; "": none of them
// was ever read.
func (b *Bot) latestOf(list []platform.Listing, cursors map[string]string) string {
	latest := ""
	for _, c := range list {
		if at, ok := cursors[c.ID]; ok && (latest == "" || b.Platform.Older(latest, at)) {
			latest = at
		}
	}
	return latest
}
