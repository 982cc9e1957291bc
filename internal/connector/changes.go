package connector

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/history"
	"chorus/internal/room/mention"
)

// edited informs every thread that received a message of its new text. Without an edit
// time only a link preview was added, and nothing has changed.
func (b *Bot) edited(ctx context.Context, m room.Message) error {
	if isConfig(m) && m.Pinned || b.isPin(m.In.ID, m.ID) {
		return b.pinsChanged(ctx, m.In.ID)
	}
	if m.Edited.IsZero() || m.Author.ID == b.Self().ID {
		return nil
	}
	if m.Author.Program() && !m.System && !m.Own {
		if taken, err := b.finished(ctx, m); taken || err != nil {
			return err
		}
	}
	text := mention.Read(m.Text, b.directory(m.In.Guild))
	version := int(m.Edited.UnixMilli())
	if _, is, _ := history.Parse(m.Text); is || b.recent.isCommand(m.In.ID, m.ID) {
		b.recent.command(m.In.ID, m.ID)
		return b.historyCommandChanged(ctx, m.In, m.ID, version)
	}
	return b.changed(ctx, room.Edited, m.ID, version, m.Author.ID, func(seq int64, line string) chat.Body {
		return chat.Edited{Seq: seq, Message: line, Blocks: append(chat.TextBlocks(text), embedded(m)...)}
	})
}

// recentEdit is the maximum age of a program's message whose edit counts as its first text.
const recentEdit = time.Hour

// finished takes a program's message that shows its progress and becomes its
// answer with a final edit: only then does it count as said. If it was already received, the edit is an ordinary one.
func (b *Bot) finished(ctx context.Context, m room.Message) (bool, error) {
	if m.Edited.Sub(m.At) > recentEdit {
		return false, nil
	}
	places, err := b.Backend.Places(ctx, b.transport, m.ID)
	if err != nil || len(places) > 0 && slices.ContainsFunc(places, func(p journal.Place) bool { return !p.Ours && b.Backend.Serves(b.Name, p.Thread) }) {
		return false, err
	}
	w := &waking{bot: b}
	defer w.up(ctx)
	return b.message(ctx, m, w)
}

// deleted informs every thread that received a message that it was deleted. A command that
// we deleted ourselves is still carried out.
func (b *Bot) deleted(ctx context.Context, channel, message string) error {
	if _, err := b.Backend.Outgoing(ctx, b.Lane(channel), "delete/"+message); err == nil {
		return nil
	}
	if b.isPin(channel, message) {
		return b.pinsChanged(ctx, channel)
	}
	if b.recent.isCommand(channel, message) {
		in, err := b.channelOf(ctx, channel)
		if err != nil {
			return err
		}
		return b.historyCommandChanged(ctx, in, message, versionDeleted)
	}
	if err := b.answerDeleted(ctx, message); err != nil {
		return err
	}
	return b.messageDeleted(ctx, message)
}

// messageDeleted writes the deletion of a message into every thread that received or read it.
func (b *Bot) messageDeleted(ctx context.Context, message string) error {
	return b.changed(ctx, room.Deleted, message, 0, "", func(seq int64, line string) chat.Body { return chat.Deleted{Seq: seq, Message: line} })
}

// versionDeleted is the version of a deleted command: after every edit.
const versionDeleted = 1<<62 - 1

// changed writes a change of a message into every thread of ours that received it, or that read
// it in a channel's history. The body names the event, or the line of an import.
func (b *Bot) changed(ctx context.Context, kind room.Kind, message string, version int, by string, body func(seq int64, line string) chat.Body) error {
	places, err := b.Backend.Places(ctx, b.transport, message)
	if err != nil {
		return err
	}
	a := journal.Arrival{Platform: b.transport, Bot: b.Name, What: string(kind), PlatformID: message, Version: version}
	for _, p := range places {
		if p.Ours || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		a.Commits = append(a.Commits, journal.Commit{Thread: p.Thread, Events: []chat.Event{{Thread: p.Thread, Who: by, Body: body(p.Seq, ""),
			Platform: b.transport, PlatformID: message, Version: version}}})
	}
	read, err := b.readIn(ctx, message)
	if err != nil {
		return err
	}
	for _, thread := range read {
		if slices.ContainsFunc(a.Commits, func(c journal.Commit) bool { return c.Thread == thread }) {
			continue
		}
		a.Commits = append(a.Commits, journal.Commit{Thread: thread, Events: []chat.Event{{Thread: thread, Who: by, Body: body(0, message),
			Platform: b.transport, PlatformID: message, Version: version}}})
	}
	if len(a.Commits) == 0 {
		return nil
	}
	b.retain(a.Commits)
	_, err = b.Backend.Arrive(ctx, a)
	return err
}

// retain erases the text of deleted messages unless the settings keep it.
func (b *Bot) retain(commits []journal.Commit) {
	for _, c := range commits {
		for i, e := range c.Events {
			if d, ok := e.Body.(chat.Deleted); ok {
				d.Forget = !b.Backend.Display(c.Thread).KeepDeleted
				c.Events[i].Body = d
			}
		}
	}
}

// whatRead is the kind of an arrival that records which thread read a message in a channel's
// history, so that a change of the message finds it.
const whatRead = "read"

// noteRead records that a thread read these messages. The store combines concurrent
// writes.
func (b *Bot) noteRead(ctx context.Context, thread chat.ThreadID, lines []chat.Line) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for _, line := range lines {
		for id := range strings.FieldsSeq(line.ID) {
			all.Go(func() {
				_, err := b.Backend.Arrive(ctx, journal.Arrival{Platform: b.transport, Bot: b.Name, What: whatRead, PlatformID: id + "/" + string(thread)})
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			})
		}
	}
	all.Wait()
	return failed
}

// readIn returns the threads that read a message in a channel's history.
func (b *Bot) readIn(ctx context.Context, message string) (threads []chat.ThreadID, err error) {
	read, err := b.Backend.ArrivalsUnder(ctx, b.transport, b.Name, whatRead, message+"/")
	for id := range read {
		threads = append(threads, chat.ThreadID(strings.TrimPrefix(id, message+"/")))
	}
	slices.Sort(threads)
	return threads, err
}

// diceOf returns the same numbers for the same message and agent, even after a restart.
func diceOf(message, agent string) activate.Dice {
	return func(n int) int {
		h := uint64(14695981039346656037)
		for _, c := range []byte(message + "@" + agent) {
			h = (h ^ uint64(c)) * 1099511628211
		}
		h ^= h >> 29
		return int(h % uint64(n))
	}
}
