package connector

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/attach"
	"chorus/internal/room/history"
	"chorus/internal/room/mention"
	"chorus/internal/room/render"
	"chorus/internal/room/route"
)

// The limits of a walk through history, besides those of package history.
const (
	walkTime  = 30 * time.Second
	walkPages = 30
)

// whatHistory is the kind of an arrival that brought other messages into a room.
const whatHistory = "history"

// introduce shows the earlier messages of a room to an agent that joins it. Unreadable
// history delays nothing.
func (b *Bot) introduce(ctx context.Context, c *journal.Commit, m room.Message, l Listener) error {
	if b.introduced[c.Thread] {
		return nil
	}
	_, err := b.Backend.Thread(ctx, c.Thread)
	if !errors.Is(err, journal.ErrUnknown) {
		b.introduced[c.Thread] = err == nil
		return err
	}
	res := b.walk(ctx, m.In, history.Start(l.Agent, m.In, m.ID, history.Rules{Roles: l.Roles, Budget: l.History}))
	if lines := b.lines(ctx, res.Messages, m.In.Guild, l); len(lines) > 0 {
		return b.addHistory(ctx, c, lines, "#"+m.In.Name, m.In.ID, 0, false)
	}
	return nil
}

// addHistory adds messages from elsewhere, or from earlier, before the events of a commit.
func (b *Bot) addHistory(ctx context.Context, c *journal.Commit, lines []chat.Line, source, id string, version int, instead bool) error {
	if lines == nil {
		lines = []chat.Line{}
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return fmt.Errorf("store the history of %s: %w", source, err)
	}
	if err := b.noteRead(ctx, c.Thread, lines); err != nil {
		return fmt.Errorf("store the history of %s: %w", source, err)
	}
	blob := chat.NewBlob(data)
	c.Blobs = append(c.Blobs, blob)
	c.Events = append([]chat.Event{{Thread: c.Thread, Body: chat.Imported{Source: source, Blob: blob.Hash, Count: len(lines), Instead: instead},
		Platform: b.transport, PlatformID: id, Version: version}}, c.Events...)
	return nil
}

// historyCommand carries out a .history that somebody has just written, for every agent of
// the room that this bot posts for. Other dot commands are read where they are pinned.
func (b *Bot) historyCommand(ctx context.Context, m room.Message, listeners []Listener, w *waking) (bool, error) {
	if _, is, _ := history.Parse(m.Text); !is || !slices.ContainsFunc(listeners, Listener.IsRoom) {
		return false, nil
	}
	b.recent.command(m.In.ID, m.ID)
	return b.replaceHistory(ctx, replacement{m.In, m.ID, 0, b.Principal(m.Author)}, listeners, w, func(l Listener) history.Result {
		rules := history.Rules{Roles: l.Roles, Budget: l.History}
		walk := history.Start(l.Agent, m.In, b.Platform.After(m.ID), rules)
		walk.Give(history.Page{Messages: []room.Message{m}}) // older messages are only read if the command says so
		res := walk.Result()
		if res.Origin == "" {
			return res // it is not for this agent, or not to be followed
		}
		return b.walk(ctx, m.In, walk)
	})
}

// historyCommandChanged reads a room again after its .history was edited or deleted.
func (b *Bot) historyCommandChanged(ctx context.Context, in room.Channel, message string, version int) error {
	w := &waking{bot: b}
	defer w.up(ctx)
	b.taking.Lock()
	defer b.taking.Unlock()
	listeners, err := b.listeners(ctx, in)
	if err != nil {
		return err
	}
	newest := b.recent.newest(in.ID)
	if newest != "" {
		newest = b.Platform.After(newest) // later messages are taken separately
	}
	_, err = b.replaceHistory(ctx, replacement{in, message, version, chat.Principal{}}, listeners, w, func(l Listener) history.Result {
		res := b.walk(ctx, in, history.Start(l.Agent, in, newest, history.Rules{Roles: l.Roles, Budget: l.History}))
		res.Origin = cmp.Or(res.Origin, in.ID)
		return res
	})
	return err
}

// replacement is a command to replace a room's history.
type replacement struct {
	in      room.Channel
	command string         // the message
	version int            // 0: it was just written
	by      chat.Principal // its author; nobody: it was edited or deleted
}

// rowFor is the conversation that a command is about; nil without an error: there is none yet,
// and a deleted command makes none.
func (b *Bot) rowFor(ctx context.Context, r replacement, thread chat.ThreadID) (*journal.Thread, error) {
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

// replaceHistory replaces each agent's history by the one that a walk returns, and reports
// the result to people.
func (b *Bot) replaceHistory(ctx context.Context, r replacement, listeners []Listener, w *waking, walk func(Listener) history.Result) (bool, error) {
	in, command, version := r.in, r.command, r.version
	arrival := journal.Arrival{Platform: b.transport, Bot: b.Name, What: whatHistory, PlatformID: command, Version: version}
	var desired []journal.Desired
	speaks := true // of several agents the first reports problems
	for _, l := range listeners {
		thread, err := chat.NewThreadID(b.transport, in.Place(), in.ID, l.Name)
		if err != nil {
			return false, err
		}
		if !l.IsRoom() || !b.Backend.Serves(b.Name, thread) {
			speaks = speaks && !l.IsRoom()
			continue
		}
		res := walk(l)
		if speaks {
			desired = append(desired, b.notes(in, command, res.Notes)...)
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
		if err := b.addHistory(ctx, &c, b.lines(ctx, res.Messages, in.Guild, l), "history", command, version, true); err != nil {
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
			desired = append(desired, b.reactionTo(in.ID, command, render.SignDone))
		}
	}
	return news, b.SetDesired(ctx, desired...)
}

// notes tell people in the room about problems of their command. They start with a
// dot, so that no agent reads them.
func (b *Bot) notes(in room.Channel, command string, notes []history.Note) (out []journal.Desired) {
	for _, n := range notes {
		if n.Channel != in.ID || n.Message != command {
			b.Log.Info("a command further back: "+n.Text, "event", "history_note", "channel", n.Channel, "message", n.Message)
			continue
		}
		out = append(out, b.aside(in.ID, "history/"+command, command, n.Text))
	}
	return out
}

// aside posts a note to people, as a dot message below the message it is about.
func (b *Bot) aside(channel, key, about, text string) journal.Desired {
	h := fnv.New64a()
	h.Write([]byte(text))
	return journal.Desired{Lane: b.Lane(channel), Key: fmt.Sprintf("%s/%x", key, h.Sum64()),
		Body: platform.Post{Text: ".note: " + text, ReplyTo: about}.Body(), Final: true}
}

// walk reads what a walk needs, until it is complete or time is up.
func (b *Bot) walk(ctx context.Context, in room.Channel, w *history.Walk) history.Result {
	ctx, cancel := context.WithTimeout(ctx, walkTime)
	defer cancel()
	asked := map[string]bool{}
	for range walkPages {
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
	errLate   = errors.New("no answer in time; try again later")
)

// page reads one page if everybody who asked for it may read there themselves.
func (b *Bot) page(ctx context.Context, in room.Channel, need history.Need, asked map[string]bool) history.Page {
	if b.can.history == nil {
		return history.Page{Err: errClosed}
	}
	for _, asker := range need.Askers {
		if need.Channel == in.ID || need.Channel == in.Parent {
			break // they can read where they are
		}
		key := need.Guild + "/" + need.Channel + "/" + asker.ID
		may, known := asked[key]
		if !known {
			var err error
			if may, err = b.MayRead(ctx, need.Guild, need.Channel, asker.ID); err != nil {
				return history.Page{Err: errLate}
			}
			asked[key] = may
		}
		if !may {
			return history.Page{Denied: true}
		}
	}
	got, err := Again(ctx, b, "history", func(ctx context.Context) (page, error) {
		list, more, err := b.can.history.ReadBefore(ctx, need.Channel, need.Before, need.Limit)
		return page{list, more}, err
	})
	if platform.Closed(err) {
		return history.Page{Err: errClosed}
	}
	if err != nil {
		return history.Page{Err: errLate}
	}
	var out history.Page
	for _, m := range got.list {
		if _, is, _ := history.Parse(m.Text); is {
			m.Author = b.member(ctx, m.In.Guild, m.Author)
		}
		for _, f := range m.Files {
			m.Text = strings.TrimPrefix(fmt.Sprintf("%s\n[attached: %s, %s]", m.Text, f.Name, attach.Size(f.Size)), "\n")
		}
		out.Messages = append(out.Messages, m)
	}
	return out
}

// MayRead reports whether somebody can read a channel's history themselves. If the
// platform cannot tell, nobody can.
func (b *Bot) MayRead(ctx context.Context, guild, channel, user string) (bool, error) {
	if b.can.readers == nil {
		return false, nil
	}
	return b.can.readers.MayRead(ctx, guild, channel, user)
}

// member is somebody with their current roles, which a history does not contain.
func (b *Bot) member(ctx context.Context, guild string, a room.Author) room.Author {
	if a.Member || a.Program() || guild == "" || guild == room.Direct {
		return a
	}
	who, err := b.Platform.Member(ctx, guild, a)
	if err != nil {
		return a // without roles they have everybody's rights
	}
	return who
}

// lines are messages as an agent remembers them: its own as its own, and without those
// hidden from it. If there are too many characters, the newest are kept.
func (b *Bot) lines(ctx context.Context, list []room.Message, guild string, l Listener) []chat.Line {
	b.learnNames(ctx, guild, list)
	names := b.directoryFor(guild, l)
	var out []chat.Line
	chars := 0
	for _, m := range slices.Backward(list) {
		m.Text = strings.TrimSpace(m.Text + "\n" + m.Embeds)
		if m.System || m.Text == "" || route.Hidden(m.Text) || room.IsDotCommand(m.Text) {
			continue
		}
		text := mention.Read(m.Text, names)
		line := chat.Line{Role: "user", From: b.participant(guild, m.Author), At: m.At.UTC(), ID: m.ID}
		if l.Wrote(m.Author) {
			line.Role, line.From = "assistant", chat.Participant{Kind: chat.Agent}
			if n := len(out); n > 0 && out[n-1].Role == line.Role {
				text += " " + out[n-1].Blocks.Text()
				line.ID += " " + out[n-1].ID
				out = out[:n-1]
			}
		} else {
			text = b.replyMark(m, l) + text
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
