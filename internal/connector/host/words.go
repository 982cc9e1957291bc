package host

import (
	"context"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
)

// maxChanges limits how many changes of a conversation's messages are read.
const maxChanges = 500

// takenBack replaces a deleted message.
const takenBack = "(deleted)"

// wordsNow is a message's current text, and whether it was deleted. The journal keeps the
// old text; people who ask do not see it.
func (h *Host) wordsNow(ctx context.Context, thread chat.ThreadID, said int64, words chat.Blocks) (now chat.Blocks, gone bool, err error) {
	versions, gone, err := h.versions(ctx, thread, said, words)
	if err != nil {
		return nil, false, err
	}
	return versions[len(versions)-1], gone, nil
}

// versions are the texts of a message, newest last.
func (h *Host) versions(ctx context.Context, thread chat.ThreadID, said int64, words chat.Blocks) (all []chat.Blocks, gone bool, err error) {
	all = []chat.Blocks{words}
	for _, kind := range []chat.Kind{chat.KindEdited, chat.KindDeleted} {
		seqs, err := h.DB.Seqs(ctx, thread, kind, said, 0, maxChanges)
		if err != nil {
			return nil, false, err
		}
		for _, seq := range seqs {
			ev, err := h.DB.Event(ctx, thread, seq)
			if err != nil {
				return nil, false, err
			}
			switch e := ev.Body.(type) {
			case chat.Edited:
				if e.Seq == said {
					all = append(all, e.Over(all[len(all)-1]))
				}
			case chat.Deleted:
				gone = gone || e.Seq == said
			}
		}
	}
	return all, gone, nil
}

// EventNow implements connector.Journal.
func (h *Backend) EventNow(ctx context.Context, thread chat.ThreadID, seq int64) (chat.Event, error) {
	ev, err := h.DB.Event(ctx, thread, seq)
	said, ok := ev.Body.(chat.Received)
	if err != nil || !ok {
		return ev, err
	}
	words, gone, err := h.App.wordsNow(ctx, thread, seq, said.Blocks)
	if said.Blocks = words; gone {
		said.Blocks = chat.TextBlocks(takenBack)
	}
	ev.Body = said
	return ev, err
}

// retitle renames conversations after their first message has changed. It is repeated with
// each arrival of the change; a crash before it leaves the old name.
func (h *Backend) retitle(ctx context.Context, a journal.Arrival) {
	for _, c := range a.Commits {
		for _, ev := range c.Events {
			var err error
			switch e := ev.Body.(type) {
			case chat.Edited:
				err = h.retitleBy(ctx, c.Thread, e.Seq)
			case chat.Deleted:
				err = h.retitleBy(ctx, c.Thread, e.Seq)
			}
			if err != nil && ctx.Err() == nil {
				h.App.Log.Warn("a conversation keeps the name of words that were changed", "component", h.Platform.Name, "event", "retitle_failed", "thread", c.Thread, "error", err)
			}
		}
	}
}

// unarchive brings conversations with new messages back into lists. A crash before it leaves them out of lists
// until the next message.
func (h *Backend) unarchive(ctx context.Context, a journal.Arrival) {
	for _, c := range a.Commits {
		said := slices.ContainsFunc(c.Events, func(ev chat.Event) bool { m, ok := ev.Body.(chat.Received); return ok && m.Prompt })
		if !said {
			continue
		}
		if err := h.handler.Unarchive(ctx, c.Thread); err != nil && ctx.Err() == nil {
			h.App.Log.Warn("a conversation stays out of lists", "component", h.Platform.Name, "event", "unarchive_failed", "thread", c.Thread, "error", err)
		}
	}
}

// retitleBy renames a conversation if it is named after this message.
func (h *Backend) retitleBy(ctx context.Context, thread chat.ThreadID, seq int64) error {
	row, err := h.DB.Thread(ctx, thread)
	if err != nil {
		return err
	}
	firsts, err := h.DB.Seqs(ctx, thread, chat.KindReceived, 0, 0, maxFirst)
	if err != nil {
		return err
	}
	for _, at := range firsts {
		ev, err := h.DB.Event(ctx, thread, at)
		if err != nil {
			return err
		}
		said, ok := ev.Body.(chat.Received)
		if !ok || !said.Prompt {
			continue
		}
		if at != seq {
			return nil // the name comes from another message
		}
		versions, gone, err := h.App.versions(ctx, thread, seq, said.Blocks)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.Join(strings.Fields(row.Title), " "), "…") // it may have been cut
		called := func(words chat.Blocks) bool {
			return name != "" && strings.HasPrefix(strings.Join(strings.Fields(words.Text()), " "), name)
		}
		title := store.TitleOf(versions[len(versions)-1])
		if gone {
			title = takenBack
		}
		if title == row.Title || title == "" || !slices.ContainsFunc(versions, called) {
			return nil // it is right, or somebody gave it another name
		}
		return h.DB.SetThread(ctx, thread, store.ThreadChange{Title: &title})
	}
	return nil
}
