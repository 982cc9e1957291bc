package connector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
	"chorus/internal/room/split"
)

// signUndelivered marks a prompt whose answer may not be written where it was asked.
const signUndelivered = "🔇"

// noticeKey is the prefix of the keys of messages about failed posts.
const noticeKey = "untold/"

// undelivered is called for a message that the platform will never accept. An answer for a thread
// that could not be opened goes to the channel. Otherwise the person who asked is informed: by a reaction,
// and by a direct message with the reason. The row has ended by then. If the program dies right
// here, the next process is called again, and rows that were already written do not change.
func (b *Bot) undelivered(o journal.Outgoing) {
	p, ok := wanted(o)
	if !ok {
		return
	}
	b.inBackground(func(ctx context.Context) {
		var err error
		if p.Home != "" && p.Home != o.Lane.Channel && noPlace(o) {
			err = b.moveHome(ctx, o, p)
		} else {
			err = b.notifyAsker(ctx, o, p)
		}
		if err != nil && ctx.Err() == nil {
			b.Log.Warn("nobody could be informed of an answer that cannot be shown", "event", "undelivered", "thread", o.Thread, "key", o.Key, "error", err)
		}
	})
}

// wanted is the content of a failed row, if anybody misses it. It is not: a reaction, something
// we deleted, a notice about another failure, or a preview, whose final text is
// still to come. Of messages that others deleted, only answers count.
func wanted(o journal.Outgoing) (platform.Post, bool) {
	deleted := takenAway(o) && o.Group == "" // a message with a group was to become an answer, which nobody has seen
	if o.Thing == journal.Reaction || o.Gone || deleted || strings.HasPrefix(o.Key, noticeKey) {
		return platform.Post{}, false
	}
	p, err := platform.ReadPost(o.Body)
	return p, err == nil && (o.Final || p.Card != "")
}

// takenAway reports whether a message of ours was deleted before it had its final text.
func takenAway(o journal.Outgoing) bool { return o.ID != "" && o.Why == string(outbox.Gone) }

// noPlace reports whether a row failed because there is nowhere to post it.
func noPlace(o journal.Outgoing) bool {
	return o.Why == string(outbox.Nowhere) || o.Why == string(outbox.Gone) && o.ID == ""
}

// failedFor is how far back a starting program looks for failures that nobody was informed of: less than
// delivered rows are kept, or people would be informed twice.
const failedFor = 24 * time.Hour

// undeliveredBefore handles what failed before this program started.
func (b *Bot) undeliveredBefore(ctx context.Context) {
	list, err := b.Backend.FailedSince(ctx, b.transport, b.Name, time.Now().Add(-failedFor))
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("could not look for what nobody was informed of", "event", "undelivered", "error", err)
	}
	told := map[string]bool{} // answers with several parts: the first failed part moves the others, in order
	for _, o := range list {
		answer := o.Lane.Channel + "/" + o.Group
		if _, ok := wanted(o); !ok || told[answer] {
			continue
		}
		told[answer] = o.Group != ""
		b.undelivered(o)
	}
}

// moveHome posts in the channel what should have been in its thread; for a group also
// the parts that failed together with this one.
func (b *Bot) moveHome(ctx context.Context, o journal.Outgoing, p platform.Post) error {
	lane := b.Lane(p.Home)
	var desired []journal.Desired
	for part := o.Part; ; part++ {
		p.Home = ""
		desired = append(desired, journal.Desired{Lane: lane, Key: o.Key, Thread: o.Thread, Seq: o.Seq, Part: part, Group: o.Group, Body: p.Body(), Final: true})
		if o.Group == "" {
			break
		}
		next, err := b.Backend.Outgoing(ctx, o.Lane, o.Group+"/"+strconv.Itoa(part+1))
		if err != nil || next.Gone {
			break // there are no more parts
		}
		if p, err = platform.ReadPost(next.Body); err != nil {
			return err
		}
		o.Key = next.Key
	}
	if err := b.Backend.SetDesired(ctx, desired...); err != nil {
		return err
	}
	b.outbox.Wake(lane)
	return nil
}

// hole is the invisible part of an answer.
type hole struct {
	parts []journal.Outgoing
	first bool // nothing before it failed, which would have been reported before
	rest  bool // something before it is visible
}

// missing are the invisible parts of an answer, from one on.
func (b *Bot) missing(ctx context.Context, o journal.Outgoing) (hole, error) {
	h := hole{parts: []journal.Outgoing{o}, first: true}
	if o.Group == "" {
		return h, nil
	}
	step := func(part int) (journal.Outgoing, bool, error) {
		row, err := b.Backend.Outgoing(ctx, o.Lane, o.Group+"/"+strconv.Itoa(part))
		if errors.Is(err, journal.ErrUnknown) {
			return row, false, nil
		}
		return row, err == nil && !row.Gone, err
	}
	failed := func(row journal.Outgoing) bool {
		_, missed := wanted(row)
		return row.State == journal.Failed && missed
	}
	for part := range o.Part {
		row, there, err := step(part)
		if err != nil {
			return h, err
		}
		lost := there && failed(row)
		h.first, h.rest = h.first && !lost, h.rest || there && !lost
	}
	for part := o.Part + 1; ; part++ {
		row, there, err := step(part)
		if err != nil || !there {
			return h, err
		}
		if failed(row) {
			h.parts = append(h.parts, row)
		}
	}
}

// notifyAsker tells the person who asked why the answer, or the rest of it, is not where they look for it.
func (b *Bot) notifyAsker(ctx context.Context, o journal.Outgoing, p platform.Post) error {
	if p.Ask != "" && p.AskIn != "" && b.caps.Reactions {
		sign := b.reactionTo(p.AskIn, p.Ask, signUndelivered)
		sign.Thread, sign.Seq = o.Thread, o.Seq
		if err := b.SetDesired(ctx, sign); err != nil {
			return err
		}
	}
	if p.Asker == "" || b.can.direct == nil {
		return nil
	}
	direct, err := Again(ctx, b, "open direct messages", func(ctx context.Context) (string, error) {
		return b.can.direct.DirectChannel(ctx, p.Asker)
	})
	if err != nil || direct == "" {
		return err
	}
	hole, err := b.missing(ctx, o)
	if err != nil {
		return err
	}
	var words []journal.Desired
	for i, part := range hole.parts {
		if p, err = platform.ReadPost(part.Body); err != nil {
			return err
		}
		for n, said := range b.insteadOf(part, p, hole.first && i == 0, hole.rest) {
			key := noticeKey + part.Key + strings.Repeat("/text", n)
			words = append(words, journal.Desired{Lane: b.Lane(direct), Key: key, Thread: o.Thread, Seq: o.Seq, Body: said.Body(), Final: true})
		}
	}
	return b.SetDesired(ctx, words...)
}

// insteadOf is what somebody is told instead of an answer, or of the rest of it: the reason, for its
// first part, and the text itself. If the text may be the reason, it is
// posted separately: it may be refused here too.
func (b *Bot) insteadOf(o journal.Outgoing, p platform.Post, first, rest bool) []platform.Post {
	why, said := platform.Post{Text: b.whyUndelivered(o, rest)}, platform.Post{Text: p.Text, Card: p.Card, File: p.File, Content: p.Content, Blob: p.Blob}
	short := split.Length(why.Text)+split.Length(p.Text) < b.maxText()-100
	suspect := o.Why == string(outbox.Broken) || o.Why == string(outbox.Invalid)
	switch {
	case !first:
		return []platform.Post{said}
	case p.Text == "" && p.Card == "" && p.File == "":
		return []platform.Post{why}
	case short && !suspect:
		said.Text = strings.TrimSpace(why.Text + "\n\n" + p.Text)
		return []platform.Post{said}
	default:
		return []platform.Post{why, said}
	}
}

// maxText is the maximum length of a message.
func (b *Bot) maxText() int { return cmp.Or(b.caps.MaxText, split.DefaultHard) }

// whyUndelivered explains to a person why there is no answer, and what to do.
func (b *Bot) whyUndelivered(o journal.Outgoing, rest bool) string {
	in, here := mark.Channel(o.Lane.Channel), "Here is what I wanted to say."
	if rest {
		here = "Here is the rest of what I wanted to say."
	}
	if takenAway(o) {
		return fmt.Sprintf("My message in %s was deleted before it contained my answer. %s", in, here)
	}
	switch outbox.Why(o.Why) {
	case outbox.Forbidden:
		return strings.Join(strings.Fields(fmt.Sprintf("I may not write in %s. %s %s", in, b.caps.Hints.Write, here)), " ")
	case outbox.Archived:
		return fmt.Sprintf("The thread %s is archived, and I may not open it again. %s", in, here)
	case outbox.Gone, outbox.Nowhere:
		return "The channel in which you asked no longer exists. " + here
	case outbox.Broken:
		return fmt.Sprintf("%s kept failing to show my answer in %s, so I stopped trying. %s", b.caps.Label, in, here)
	default:
		return fmt.Sprintf("%s did not accept my answer in %s. %s", b.caps.Label, in, here)
	}
}
