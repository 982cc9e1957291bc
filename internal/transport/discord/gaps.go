package discord

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/journal"
	"chorus/internal/room"
)

func (b *Bot) lane(channel string) journal.Lane {
	return journal.Lane{Platform: room.Transport, Bot: b.Name, Channel: channel}
}

// messages is a channel that says which message in it is the newest.
type messages interface {
	discord.Channel
	LastMessageID() *snowflake.ID
}

// guild learns a guild and reads on, in every channel, where we were. Live events
// come behind this one, so the order holds.
func (b *Bot) guild(ctx context.Context, e gateway.EventGuildCreate) error {
	for _, r := range e.Roles {
		b.world.roleOf(e.ID.String(), r)
	}
	cursors, err := b.Backend.Cursors(ctx, room.Transport, b.Name)
	if err != nil {
		return err
	}
	var list []discord.Channel
	for _, c := range e.Channels {
		list = append(list, c)
	}
	for _, c := range e.Threads {
		list = append(list, c)
	}
	latest, wait := latestOf(list, cursors), b.Patience
	for _, c := range list {
		b.world.channel(c)
		m, ok := c.(messages)
		if !ok {
			continue
		}
		newest := "0"
		if id := m.LastMessageID(); id != nil {
			newest = id.String()
		}
		id := c.ID().String()
		cursor, seen := cursors[id]
		if !seen {
			if cursor, err = b.firstSight(ctx, c, newest, latest); err == nil {
				err = b.Backend.MoveCursor(ctx, b.lane(id), cursor)
			}
			if err != nil {
				return err
			}
		}
		if !room.Older(cursor, newest) {
			continue
		}
		if err := b.readOn(ctx, id, &wait); err != nil {
			return err
		}
	}
	b.mu.Lock()
	delete(b.guilds, e.ID.String())
	b.mu.Unlock()
	b.renewed(ctx)
	return b.direct(ctx)
}

// opened learns a channel that was made while we listen: it is read from its beginning.
func (b *Bot) opened(ctx context.Context, c discord.Channel) error {
	b.world.channel(c)
	if _, ok := c.(messages); !ok {
		return nil
	}
	lane := b.lane(c.ID().String())
	cursor, err := b.Backend.Cursor(ctx, lane)
	if err != nil || cursor != "" {
		return err
	}
	// A thread has the id of the message it was opened on, which stands elsewhere.
	return b.Backend.MoveCursor(ctx, lane, before(lane.Channel))
}

// stir notes that something was said in a channel, so that it is read again soon. The
// first message of a channel never seen is behind its cursor.
func (b *Bot) stir(ctx context.Context, channel, message string) error {
	b.mu.Lock()
	_, known := b.stirred[channel]
	if !known {
		b.stirred[channel] = stirring{time.Now()}
	}
	b.mu.Unlock()
	if known {
		return nil
	}
	lane := b.lane(channel)
	cursor, err := b.Backend.Cursor(ctx, lane)
	if err != nil || cursor != "" {
		return err
	}
	return b.Backend.MoveCursor(ctx, lane, before(message))
}

// stirredChannels are those in which something was said at least so long ago.
func (b *Bot) stirredChannels(age time.Duration) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for id, s := range b.stirred {
		if time.Since(s.since) >= age {
			out = append(out, id)
		}
	}
	return out
}

func (b *Bot) catchUp(ctx context.Context, channels []string) error {
	wait := b.Patience
	for _, id := range channels {
		if err := b.readOn(ctx, id, &wait); err != nil {
			return err
		}
	}
	return nil
}

// readNews reads a channel's history from its cursor on, hears what is new, and moves the
// cursor. A channel that is gone, or closed to us, is left alone. It counts messages that the gateway
// should have told of before.
func (b *Bot) readNews(ctx context.Context, channel string, wait time.Duration) (missed int, err error) {
	lane := b.lane(channel)
	// Whoever replied to a message that we were just making shall find its thread.
	if err := b.settled(ctx, lane); err != nil {
		return 0, err
	}
	for {
		cursor, err := b.Backend.Cursor(ctx, lane)
		if err != nil || cursor == "" {
			return missed, err
		}
		list, err := b.history(ctx, channel, cursor, wait)
		switch status(err) {
		case http.StatusForbidden, http.StatusNotFound:
			b.Log.Info("a channel cannot be read any more", "event", "channel_closed", "channel", channel, "error", err)
			b.settle(channel)
			return missed, nil
		}
		if err != nil {
			return missed, err
		}
		n, err := b.hearPage(ctx, list)
		if missed += n; err != nil {
			return missed, err
		}
		if n := len(list); n > 0 {
			if err := b.Backend.MoveCursor(ctx, lane, list[n-1].ID.String()); err != nil {
				return missed, err
			}
		}
		if len(list) < historyPage {
			b.settle(channel)
			return missed, nil
		}
	}
}

// hearPage hears messages that stood in a channel's history, as one batch, and counts those
// that the gateway should have told of before.
func (b *Bot) hearPage(ctx context.Context, list []discord.Message) (missed int, err error) {
	w := &waking{bot: b}
	defer w.up(ctx)
	members := map[snowflake.ID]*discord.Member{}
	for _, m := range list {
		if err := b.enrol(ctx, &m, members); err != nil {
			return missed, err
		}
		news, err := b.message(ctx, m, w)
		if err != nil {
			return missed, err
		}
		if news && time.Since(m.CreatedAt) > b.Grace {
			missed++
		}
	}
	return missed, nil
}

// enrol says who wrote a message that stood in a channel's history: history does not tell their
// roles, and without them they might less than when they are heard at once. Those who were asked for
// are kept for the rest of the page.
func (b *Bot) enrol(ctx context.Context, m *discord.Message, asked map[snowflake.ID]*discord.Member) error {
	if m.Member != nil || m.Author.Bot || m.WebhookID != nil {
		return nil
	}
	in, err := b.channelOf(ctx, m.ChannelID.String())
	if err != nil || in.Guild == room.Direct {
		return err
	}
	if who, ok := asked[m.Author.ID]; ok {
		m.Member = who
		return nil
	}
	heard, err := b.Backend.Places(ctx, room.Transport, m.ID.String())
	if err != nil || len(heard) > 0 {
		return err
	}
	who, err := patiently(ctx, b, b.Patience, "member", func(ctx context.Context) (*discord.Member, error) {
		return b.rest.GetMember(number(in.Guild), m.Author.ID, rest.WithCtx(ctx))
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		who = nil // they are gone, or hidden from us: without roles they may what everybody may
	}
	m.Member, asked[m.Author.ID] = who, who
	return nil
}

// settleTime is how long a channel's history waits for messages of ours whose outcome is not
// known. One that cannot be settled, because Discord fails on that channel, must not keep us from
// hearing all others.
const settleTime = 10 * time.Second

func (b *Bot) settled(ctx context.Context, lane journal.Lane) error {
	within, cancel := context.WithTimeout(ctx, min(settleTime, b.Patience))
	defer cancel()
	err := b.outbox.Settled(within, lane)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		b.Log.Warn("a message of ours is neither there nor not there; reading on all the same", "event", "unsettled", "channel", lane.Channel)
		return nil
	}
	return err
}

// grace is how late the gateway may be.
const grace = 20 * time.Second

func (b *Bot) settle(channel string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.stirred, channel)
}

// patrol reads channels again some minutes after something was said in them. What it
// finds there for the first time, a connection that seems well has not told: it is deaf, and let go of.
func (b *Bot) patrol(ctx context.Context) {
	for sleep(ctx, b.Patrol) {
		b.prune(ctx)
		if b.me().ID == "" {
			continue // there was no connection yet: nobody knows whom a mention is for
		}
		missed := 0
		for _, channel := range b.watched(ctx) {
			n, err := b.readNews(ctx, channel, b.Patience)
			if err != nil && ctx.Err() == nil {
				b.Log.Warn("a channel could not be read", "event", "patrol_failed", "channel", channel, "error", err)
			}
			missed += n
		}
		if missed > 0 && ctx.Err() == nil {
			b.Log.Warn("the connection did not tell of messages; making a new one", "event", "deaf", "missed", missed)
			b.mu.Lock()
			for _, again := range b.resync { // which shard is deaf is not known
				again()
			}
			b.mu.Unlock()
		}
	}
}

// shownFor is how long what was shown to its end is remembered. Nobody needs it by then; it
// is for people who look into the outbox.
const shownFor = 7 * 24 * time.Hour

// prune forgets some of it.
func (b *Bot) prune(ctx context.Context) {
	if _, err := b.Backend.PruneOutbox(ctx, room.Transport, b.Name, reader, time.Now().Add(-shownFor)); err != nil && ctx.Err() == nil {
		b.Log.Warn("the outbox could not be pruned", "event", "prune_failed", "error", err)
	}
}

// manyWatched is how many quiet channels a patrol looks at, the newest cursors first.
const manyWatched = 20

// watched are the channels that a patrol reads: where something was said, and those
// where something was said last, because a deaf connection stirs none.
func (b *Bot) watched(ctx context.Context) []string {
	out := b.stirredChannels(0)
	cursors, err := b.Backend.Cursors(ctx, room.Transport, b.Name)
	if err != nil {
		return out
	}
	for _, id := range out {
		delete(cursors, id)
	}
	if b.untoldGuilds() > 0 {
		// What nobody has told of may belong to a guild that is about to, with its roles.
		maps.DeleteFunc(cursors, func(id, _ string) bool { _, ok := b.world.known(id); return !ok })
	}
	return append(out, newestCursors(cursors, manyWatched)...)
}

// newestCursors are the channels where something was read last, the newest first.
func newestCursors(cursors map[string]string, limit int) []string {
	list := slices.SortedFunc(maps.Keys(cursors), func(a, b string) int {
		switch {
		case room.Older(cursors[b], cursors[a]):
			return -1
		case room.Older(cursors[a], cursors[b]):
			return 1
		default:
			return strings.Compare(a, b)
		}
	})
	return list[:min(len(list), limit)]
}

// onResync takes how a shard's connection is let go of; it must not wait.
func (b *Bot) onResync(shard int, f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resync[shard] = f
}

// stirring is a channel in which something was said since it was last read.
type stirring struct{ since time.Time }

// before is the id just before a message's.
func before(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n == 0 {
		return "0"
	}
	return strconv.FormatUint(n-1, 10)
}
