package transcript

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/window"
)

// deferring reports whether the thread's last run used the first renderer, under which words
// that the model had seen stayed until the next roll. Its requests are rebuilt as they were
// sent. The first run with the current renderer ends this.
func (l *Log) deferring() bool { return l.renderer == firstRenderer }

// edit is a change of words that already have a place in the window.
type edit struct {
	Blocks  chat.Blocks
	Deleted bool
	Hidden  bool    `json:",omitempty"` // with Deleted: by a reaction, which can be removed again
	Now     bool    `json:",omitempty"` // it removes words, so it does not wait for the next roll
	Notes   []int64 `json:",omitempty"` // events whose notes repeat words of the message
}

// drop removes a prompt from the queue after it was refused or deleted.
func (l *Log) drop(seq int64) {
	l.waiting = slices.DeleteFunc(l.waiting, func(w Waiting) bool { return w.Seq == seq })
}

// deleted removes words. What the model has seen leaves the window too, even
// though this invalidates the provider's cache from there on.
func (l *Log) deleted(at int64, b chat.Deleted) error {
	if b.Message != "" {
		if err := l.changeLine(b.Message, func(chat.Blocks) chat.Blocks { return nil }); err != nil {
			return err
		}
		return l.somethingToAnswer(at)
	}
	l.drop(b.Seq)
	before := len(l.pending)
	l.pending = slices.DeleteFunc(l.pending, func(it item) bool { return it.seq == b.Seq })
	l.hidden = slices.DeleteFunc(l.hidden, func(e entry) bool { return e.seq == b.Seq })
	if len(l.pending) == before && l.PlaceOf(b.Seq) > 0 {
		l.edits[b.Seq] = edit{Deleted: true, Notes: l.edits[b.Seq].Notes}
	}
	if err := l.settle(); err != nil {
		return err
	}
	return l.somethingToAnswer(at)
}

// changeLine changes a message that was imported from a platform's
// history. If no words are left, it removes the message.
func (l *Log) changeLine(message string, change func(chat.Blocks) chat.Blocks) error {
	changed := func(id string, msg *model.Message) (*model.Message, error) {
		if !slices.Contains(strings.Fields(id), message) {
			return msg, nil
		}
		blocks := change(msg.Blocks)
		if len(blocks) == 0 {
			return nil, nil
		}
		return model.NewMessage(msg.Role, msg.From, blocks)
	}
	items := l.pending
	if l.renewal != nil {
		items = append(slices.Clone(items), *l.renewal)
	}
	for i := range items {
		kept := item{seq: items[i].seq, kind: items[i].kind, at: items[i].at}
		for n, msg := range items[i].msgs {
			msg, err := changed(items[i].id(n), msg)
			if err != nil {
				return err
			}
			if msg != nil {
				kept.msgs, kept.ids = append(kept.msgs, msg), append(kept.ids, items[i].id(n))
			}
		}
		items[i] = kept
	}
	if l.renewal != nil {
		l.renewal, items = &items[len(items)-1], items[:len(items)-1]
	}
	l.pending = slices.DeleteFunc(items, func(it item) bool { return len(it.msgs) == 0 })
	list := slices.Clone(l.window)
	for i, e := range list {
		msg, err := changed(e.id, e.msg)
		if err != nil {
			return err
		}
		if msg != e.msg {
			list[i].msg = msg
			l.used, l.usedAt, l.sent = 0, 0, sent{}
		}
	}
	l.window = slices.DeleteFunc(list, func(e entry) bool { return e.msg == nil })
	return nil
}

// removeEntries removes messages from the window.
func (l *Log) removeEntries(gone func(entry) bool) {
	if !slices.ContainsFunc(l.window, gone) {
		return
	}
	l.window = slices.DeleteFunc(slices.Clone(l.window), gone)
	l.used, l.usedAt, l.sent = 0, 0, sent{}
}

// settle applies the changes that do not wait for a roll.
func (l *Log) settle() error {
	if l.deferring() {
		return nil
	}
	for seq, ed := range l.edits {
		if !ed.Deleted && !ed.Now {
			continue
		}
		delete(l.edits, seq)
		l.removeNotes(ed.Notes)
		if ed.Deleted {
			for _, e := range l.window {
				if ed.Hidden && e.seq == seq && e.kind == words {
					l.hidden = append(l.hidden, e)
				}
			}
			l.removeEntries(func(e entry) bool { return e.seq == seq && isSpoken(e) })
			continue
		}
		if err := l.rewrite(seq, ed.Blocks); err != nil {
			return err
		}
	}
	return nil
}

// removeNotes removes notes that repeat the words of a message.
func (l *Log) removeNotes(notes []int64) {
	l.pending = slices.DeleteFunc(l.pending, func(it item) bool { return slices.Contains(notes, it.seq) })
	l.removeEntries(func(e entry) bool { return slices.Contains(notes, e.seq) })
}

// dropNotes removes all notes about edits.
func (l *Log) dropNotes() {
	for _, ed := range l.edits {
		l.removeNotes(ed.Notes)
	}
}

// rewrite replaces the words of an event.
func (l *Log) rewrite(seq int64, blocks chat.Blocks) error {
	for i, e := range l.window {
		if e.seq != seq || e.kind != words {
			continue
		}
		msg, err := model.NewMessage(e.msg.Role, e.msg.From, blocks)
		if err != nil {
			return err
		}
		l.window = slices.Clone(l.window)
		l.window[i].msg = msg
		l.used, l.usedAt, l.sent = 0, 0, sent{}
	}
	return nil
}

// textDeleted replaces the words that a run was about to answer.
const textDeleted = "(The message that was to be answered has been deleted.)"

// somethingToAnswer makes sure that a run whose prompt was removed still has a request that
// providers accept: one that does not end with the agent's own words.
func (l *Log) somethingToAnswer(at int64) error {
	if l.deferring() || l.run == nil || l.run.Final || l.turn != nil {
		return nil
	}
	for _, it := range l.pending {
		if it.kind != note && len(it.msgs) > 0 {
			return nil
		}
	}
	for _, e := range slices.Backward(l.window) {
		if e.kind == note {
			continue
		}
		if e.kind != said {
			return nil
		}
		break
	}
	return l.pend(at, words, model.User, chat.Participant{Kind: chat.System}, chat.TextBlocks(textDeleted))
}

// edit changes words that still wait at once. In words that the model has seen, it
// applies removals at once. Additions wait for the next roll and are announced by a
// note, so that the provider's cache stays valid.
func (l *Log) edit(at int64, b chat.Edited) error {
	if b.Message != "" {
		return l.changeLine(b.Message, b.Over)
	}
	for i := range l.waiting {
		if l.waiting[i].Seq == b.Seq {
			l.waiting[i].Blocks = b.Over(l.waiting[i].Blocks)
			return nil
		}
	}
	for i, it := range l.pending {
		if it.seq == b.Seq && it.kind == words && len(it.msgs) == 1 {
			msg, err := model.NewMessage(it.msgs[0].Role, it.msgs[0].From, b.Over(it.msgs[0].Blocks))
			if err != nil {
				return err
			}
			l.pending[i].msgs = []*model.Message{msg}
			return nil
		}
	}
	for i, e := range l.hidden {
		if e.seq == b.Seq {
			msg, err := model.NewMessage(e.msg.Role, e.msg.From, b.Over(e.msg.Blocks))
			if err == nil {
				l.hidden[i].msg = msg
			}
			return err
		}
	}
	for _, e := range l.window {
		if e.seq == b.Seq {
			return l.editPlaced(at, e, b)
		}
	}
	return nil
}

func (l *Log) editPlaced(at int64, e entry, b chat.Edited) error {
	before := e.msg.Blocks
	changed, ok := l.edits[b.Seq]
	if ok && changed.Deleted {
		return nil
	} else if ok {
		before = changed.Blocks
	}
	after := edit{Blocks: b.Over(before), Notes: changed.Notes}
	switch {
	case b.Files:
		l.edits[b.Seq] = edit{Blocks: after.Blocks, Notes: append(after.Notes, at)}
		text := chat.Text{Text: fmt.Sprintf("<note about=\"files\">\nThe files of an earlier message of %s have come:\n</note>", e.msg.From.Name)}
		return l.pend(at, words, model.User, chat.Participant{Kind: chat.System}, append(chat.Blocks{text}, b.Blocks...))
	case !l.deferring() && e.kind == words && window.Hidden(window.Item{Text: after.Blocks.Text(), Heard: true}):
		return l.deleted(at, chat.Deleted{Seq: b.Seq})
	case !l.deferring() && takesAway(before.Text(), after.Blocks.Text()):
		after.Now = true
		l.edits[b.Seq] = after
		if err := l.settle(); err != nil {
			return err
		}
		return l.pend(at, note, model.User, chat.Participant{Kind: chat.System},
			chat.TextBlocks(fmt.Sprintf("<note about=\"edit\">\n%s changed an earlier message; it is shown as it reads now.\n</note>", e.msg.From.Name)))
	default:
		after.Notes = append(after.Notes, at)
		l.edits[b.Seq] = after
		text := fmt.Sprintf("<note about=\"edit\">\n%s changed an earlier message. It now reads:\n%s\n</note>", e.msg.From.Name, b.Blocks.Text())
		return l.pend(at, note, model.User, chat.Participant{Kind: chat.System}, chat.TextBlocks(text))
	}
}

// takesAway reports whether after lacks a word that before has.
func takesAway(before, after string) bool {
	has := map[string]int{}
	for word := range strings.FieldsSeq(after) {
		has[word]++
	}
	for word := range strings.FieldsSeq(before) {
		if has[word]--; has[word] < 0 {
			return true
		}
	}
	return false
}

// reacted hides a message that got the dotted face, as a deletion
// would. Removing the face shows the message again.
func (l *Log) reacted(at int64, b chat.Reacted) error {
	if !window.IsFace(b.Emoji) {
		return nil
	}
	if !b.Added {
		if e, ok := l.edits[b.Seq]; ok && e.Deleted && (e.Hidden || l.deferring()) {
			delete(l.edits, b.Seq)
		}
		l.unhide(b.Seq)
		return nil
	}
	before := len(l.pending)
	l.pending = slices.DeleteFunc(l.pending, func(it item) bool { return it.seq == b.Seq && it.kind == words })
	if len(l.pending) == before && l.PlaceOf(b.Seq) > 0 {
		l.edits[b.Seq] = edit{Deleted: true, Hidden: true, Notes: l.edits[b.Seq].Notes}
	}
	if err := l.settle(); err != nil {
		return err
	}
	return l.somethingToAnswer(at)
}

// unhide puts hidden words back in their old place.
func (l *Log) unhide(seq int64) {
	for _, e := range l.hidden {
		if e.seq != seq {
			continue
		}
		i, _ := slices.BinarySearchFunc(l.window, e.place, func(e entry, place int64) int { return int(e.place - place) })
		l.window = slices.Insert(slices.Clone(l.window), i, e)
		l.used, l.usedAt, l.sent = 0, 0, sent{}
	}
	l.hidden = slices.DeleteFunc(l.hidden, func(e entry) bool { return e.seq == seq })
}
