package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/attach"
	"chorus/internal/room/history"
	"chorus/internal/room/mention"
	"chorus/internal/room/render"
	"chorus/internal/room/route"
)

// The bounds of a walk through the past, beside those of package history.
const (
	pastTime  = 30 * time.Second
	pastPages = 30
)

// whatHistory is what an arrival is called that brought other messages into a room.
const whatHistory = "history"

// meet lets an agent that comes to a room for the first time know what was said before.
// A past that cannot be read keeps nothing back.
func (b *Bot) meet(ctx context.Context, c *journal.Commit, m room.Message, l connector.Listener) error {
	if b.met[c.Thread] {
		return nil
	}
	_, err := b.Backend.Thread(ctx, c.Thread)
	if !errors.Is(err, journal.ErrUnknown) {
		b.met[c.Thread] = err == nil
		return err
	}
	res := b.walk(ctx, m.In, history.Start(l.Agent, m.In, m.ID, history.Rules{Roles: l.Roles, Budget: l.History}))
	if lines := b.lines(res.Messages, m.In.Guild, l); len(lines) > 0 {
		return addPast(c, lines, "#"+m.In.Name, m.In.ID, 0, false)
	}
	return nil
}

// addPast puts messages that were said elsewhere, or earlier, before what a commit has to say.
func addPast(c *journal.Commit, lines []chat.Line, source, id string, version int, instead bool) error {
	if lines == nil {
		lines = []chat.Line{}
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return fmt.Errorf("write down the past of %s: %w", source, err)
	}
	blob := chat.NewBlob(data)
	c.Blobs = append(c.Blobs, blob)
	c.Events = append([]chat.Event{{Thread: c.Thread, Body: chat.Imported{Source: source, Blob: blob.Hash, Count: len(lines), Instead: instead},
		Platform: room.Transport, PlatformID: id, Version: version}}, c.Events...)
	return nil
}

// ordered carries out a .history that somebody has just written, for every agent of the
// room that this bot speaks for. Other orders are read where they are pinned.
func (b *Bot) ordered(ctx context.Context, m room.Message, listeners []connector.Listener, w *waking) (bool, error) {
	if _, is, _ := history.Parse(m.Text); !is || !slices.ContainsFunc(listeners, connector.Listener.IsRoom) {
		return false, nil
	}
	b.tails.order(m.In.ID, m.ID)
	return b.renew(ctx, renewal{m.In, m.ID, 0, principal(m.Author)}, listeners, w, func(l connector.Listener) history.Result {
		rules := history.Rules{Roles: l.Roles, Budget: l.History}
		walk := history.Start(l.Agent, m.In, after(m.ID), rules)
		walk.Give(history.Page{Messages: []room.Message{m}}) // what is older is asked for only if the order says so
		res := walk.Result()
		if res.Origin == "" {
			return res // it is not for this agent, or not to be followed
		}
		return b.walk(ctx, m.In, walk)
	})
}

// reordered reads a room anew whose order was changed or taken back.
func (b *Bot) reordered(ctx context.Context, in room.Channel, message string, version int) error {
	w := &waking{bot: b}
	defer w.up(ctx)
	b.meeting.Lock()
	defer b.meeting.Unlock()
	listeners, err := b.listeners(ctx, in)
	if err != nil {
		return err
	}
	newest := b.tails.newest(in.ID)
	if newest != "" {
		newest = after(newest) // what comes later is heard by itself
	}
	_, err = b.renew(ctx, renewal{in, message, version, chat.Principal{}}, listeners, w, func(l connector.Listener) history.Result {
		res := b.walk(ctx, in, history.Start(l.Agent, in, newest, history.Rules{Roles: l.Roles, Budget: l.History}))
		res.Origin = first(res.Origin, in.ID)
		return res
	})
	return err
}

// renewal is an order to put another past into a room.
type renewal struct {
	in      room.Channel
	order   string         // the message
	version int            // 0: it was just written
	by      chat.Principal // who wrote it; nobody: it was changed or taken back
}

// rowFor is the conversation that an order is about; nil, and no error: there is none yet, and
// an order that is gone makes none.
func (b *Bot) rowFor(ctx context.Context, r renewal, thread chat.ThreadID) (*journal.Thread, error) {
	if r.by.ID == "" {
		row, err := b.Backend.Thread(ctx, thread)
		if errors.Is(err, journal.ErrUnknown) {
			return nil, nil
		}
		return &row, err
	}
	row, err := b.Backend.NewThread(ctx, thread, r.by, roomTitle(r.in))
	return &row, err
}

// renew puts the past that a walk gives in the place of each agent's own, and tells people
// what became of the order.
func (b *Bot) renew(ctx context.Context, r renewal, listeners []connector.Listener, w *waking, walk func(connector.Listener) history.Result) (bool, error) {
	in, order, version := r.in, r.order, r.version
	arrival := journal.Arrival{Platform: room.Transport, Bot: b.Name, What: whatHistory, PlatformID: order, Version: version}
	var wishes []journal.Desired
	speaks := true // of several agents the first tells what is wrong
	for _, l := range listeners {
		thread, err := chat.NewThreadID(room.Transport, in.Place(), in.ID, l.Name)
		if err != nil {
			return false, err
		}
		if !l.IsRoom() || !b.Backend.Serves(b.Name, thread) {
			speaks = speaks && !l.IsRoom()
			continue
		}
		res := walk(l)
		if speaks {
			wishes = append(wishes, b.notes(in, order, res.Notes)...)
		}
		speaks = false
		if res.Origin == "" || res.Undone {
			continue
		}
		row, err := b.rowFor(ctx, r, thread)
		if err != nil {
			return false, err
		}
		if row == nil {
			continue
		}
		c := journal.Commit{Thread: thread, Create: row}
		if err := addPast(&c, b.lines(res.Messages, in.Guild, l), "history", order, version, true); err != nil {
			return false, err
		}
		arrival.Commits = append(arrival.Commits, c)
		arrival.Decision += fmt.Sprintf("history of %s: %d messages; ", l.Name, len(res.Messages))
	}
	news := false
	if len(arrival.Commits) > 0 {
		var err error
		if news, err = w.arrive(ctx, arrival); err != nil {
			return false, err
		}
		if version == 0 {
			wishes = append(wishes, b.mark(in.ID, order, render.SignDone))
		}
	}
	return news, b.wish(ctx, in.ID, wishes...)
}

// notes tell people in the room what is wrong with an order of theirs. They begin with a
// dot, so that no agent takes them for words.
func (b *Bot) notes(in room.Channel, order string, notes []history.Note) (out []journal.Desired) {
	for _, n := range notes {
		if n.Channel != in.ID || n.Message != order {
			b.Log.Info("an order further back: "+n.Text, "event", "history_note", "channel", n.Channel, "message", n.Message)
			continue
		}
		out = append(out, b.aside(in.ID, "history/"+order, order, n.Text))
	}
	return out
}

// aside is the wish for a note to people, as a dot message under the message it is about.
func (b *Bot) aside(channel, key, about, text string) journal.Desired {
	h := fnv.New64a()
	h.Write([]byte(text))
	body, _ := json.Marshal(post{Text: ".note: " + text, ReplyTo: about}) // strings only
	return journal.Desired{Lane: b.lane(channel), Key: fmt.Sprintf("%s/%x", key, h.Sum64()), Body: body, Final: true}
}

// walk reads what a walk asks for, until it is over or time is.
func (b *Bot) walk(ctx context.Context, in room.Channel, w *history.Walk) history.Result {
	ctx, cancel := context.WithTimeout(ctx, pastTime)
	defer cancel()
	asked := map[string]bool{}
	for range pastPages {
		need, more := w.Next()
		if !more {
			break
		}
		w.Give(b.page(ctx, in, need, asked))
	}
	return w.Result()
}

var (
	errClosed = errors.New("this bot cannot read that channel")
	errLate   = errors.New("no answer from Discord in time; write it again later")
)

// page reads one page, if everybody who asked for it may read there themselves.
func (b *Bot) page(ctx context.Context, in room.Channel, need history.Need, asked map[string]bool) history.Page {
	for _, asker := range need.Askers {
		if need.Channel == in.ID || need.Channel == in.Parent {
			break // where they are they can read
		}
		key := need.Guild + "/" + need.Channel + "/" + asker.ID
		may, known := asked[key]
		if !known {
			var err error
			if may, err = b.mayRead(ctx, need.Guild, need.Channel, asker.ID); err != nil {
				return history.Page{Err: errLate}
			}
			asked[key] = may
		}
		if !may {
			return history.Page{Denied: true}
		}
	}
	got, err := again(ctx, b.rest, "past", func(ctx context.Context) ([]discord.Message, error) {
		return b.rest.GetMessages(number(need.Channel), 0, number(need.Before), 0, need.Limit, rest.WithCtx(ctx))
	})
	switch status(err) {
	case http.StatusForbidden, http.StatusNotFound:
		return history.Page{Err: errClosed}
	}
	if err != nil {
		return history.Page{Err: errLate}
	}
	at, err := b.channelOf(ctx, need.Channel)
	if err != nil {
		return history.Page{Err: errClosed}
	}
	var page history.Page
	for _, m := range got {
		msg := b.converted(m, at)
		if _, is, _ := history.Parse(msg.Text); is {
			msg.Author = b.member(ctx, at.Guild, msg.Author)
		}
		for _, a := range m.Attachments {
			msg.Text = strings.TrimPrefix(fmt.Sprintf("%s\n[attached: %s, %s]", msg.Text, a.Filename, attach.Size(int64(a.Size))), "\n")
		}
		page.Messages = append(page.Messages, msg)
	}
	return page
}

// member is somebody with the roles they have now; history does not tell them.
func (b *Bot) member(ctx context.Context, guild string, a room.Author) room.Author {
	if a.Member || a.Program() || guild == "" || guild == room.Direct {
		return a
	}
	m, err := b.rest.GetMember(number(guild), number(a.ID), rest.WithCtx(ctx))
	if err != nil {
		return a // without roles they may what everybody may
	}
	return b.author(guild, m.User, m, a.Webhook)
}

// lines are messages as an agent remembers them: its own as its own, and nothing that was
// hidden from it. Of too many characters the newest are kept.
func (b *Bot) lines(list []room.Message, guild string, l connector.Listener) []chat.Line {
	names := b.directory(guild, l)
	var out []chat.Line
	chars := 0
	for _, m := range slices.Backward(list) {
		if m.System || m.Text == "" || route.Hidden(m.Text) || room.IsDotCommand(m.Text) {
			continue
		}
		text := mention.Read(m.Text, names)
		line := chat.Line{Role: "user", From: m.Author.Participant(), At: number(m.ID).Time().UTC()}
		if l.Wrote(m.Author) {
			line.Role, line.From = "assistant", chat.Participant{Kind: chat.Agent}
			if n := len(out); n > 0 && out[n-1].Role == line.Role {
				text += " " + out[n-1].Blocks.Text()
				out = out[:n-1]
			}
		} else {
			text = replyMark(m, l) + text
		}
		if chars += len(text); l.HistoryChars > 0 && chars > l.HistoryChars {
			break
		}
		line.Blocks = chat.TextBlocks(text)
		out = append(out, line)
	}
	slices.Reverse(out)
	return out
}

// after is the id behind a message's.
func after(id string) string { return (number(id) + 1).String() }
