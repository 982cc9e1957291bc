package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/room"
	"chorus/internal/room/split"
)

// signUntold stands under a question whose answer may not be written where it was asked.
const signUntold = "🔇"

// toldElsewhere stands in front of the keys of words about what could not be said.
const toldElsewhere = "untold/"

// untold hears of a message that Discord will never take. An answer for a thread that could
// not be opened goes to the channel; otherwise whoever asked is told: by a sign, and by a
// direct message with the reason. The row has ended by then; if the program dies right here, the
// next one hears of it again, and wishes that were written already change nothing.
func (b *Bot) untold(o journal.Outgoing) {
	p, ok := wanted(o)
	if !ok {
		return
	}
	b.mu.Lock()
	ctx := b.running
	b.mu.Unlock()
	b.work.Go(func() {
		var err error
		if p.Home != "" && p.Home != o.Lane.Channel && noPlace(o) {
			err = b.moveHome(ctx, o, p)
		} else {
			err = b.tellAsker(ctx, o, p)
		}
		if err != nil && ctx.Err() == nil {
			b.Log.Warn("nobody could be told of an answer that cannot be shown", "event", "untold", "thread", o.Thread, "key", o.Key, "error", err)
		}
	})
}

// wanted is what a row that failed had to say, if anybody misses it: not a sign, not what we took back, not words about
// something else that failed, not a preview, which has its last word still to come, and of what others deleted only answers.
func wanted(o journal.Outgoing) (post, bool) {
	deleted := takenAway(o) && o.Group == "" // a message with a group was to become an answer, which nobody has seen
	if o.Thing == journal.Reaction || o.Gone || deleted || strings.HasPrefix(o.Key, toldElsewhere) {
		return post{}, false
	}
	p, err := read(o.Body)
	return p, err == nil && (o.Final || p.Card != "")
}

// takenAway reports whether a message of ours was deleted before it said what it should in the end.
func takenAway(o journal.Outgoing) bool { return o.ID != "" && o.Why == string(outbox.Gone) }

// noPlace reports whether a row failed because there is nowhere to say it.
func noPlace(o journal.Outgoing) bool {
	return o.Why == string(outbox.Nowhere) || o.Why == string(outbox.Gone) && o.ID == ""
}

// failedFor is how far back a program that begins looks for what nobody was told of: not as far as
// what was shown is remembered, or it would be told twice.
const failedFor = 24 * time.Hour

// untoldBefore hears again of what failed before this program began.
func (b *Bot) untoldBefore(ctx context.Context) {
	list, err := b.Backend.FailedSince(ctx, room.Transport, b.Name, time.Now().Add(-failedFor))
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("could not look for what nobody was told of", "event", "untold", "error", err)
	}
	told := map[string]bool{} // answers of several parts: with the first that failed the others are moved, in order
	for _, o := range list {
		answer := o.Lane.Channel + "/" + o.Group
		if _, ok := wanted(o); !ok || told[answer] {
			continue
		}
		told[answer] = o.Group != ""
		b.untold(o)
	}
}

// moveHome says in the channel what should have been said in its thread; of a group also
// the parts that failed together with this one.
func (b *Bot) moveHome(ctx context.Context, o journal.Outgoing, p post) error {
	lane := b.lane(p.Home)
	var wishes []journal.Desired
	for part := o.Part; ; part++ {
		p.Home = ""
		body, err := json.Marshal(p)
		if err != nil {
			return err
		}
		wishes = append(wishes, journal.Desired{Lane: lane, Key: o.Key, Thread: o.Thread, Seq: o.Seq, Part: part, Group: o.Group, Body: body, Final: true})
		if o.Group == "" {
			break
		}
		next, err := b.Backend.Outgoing(ctx, o.Lane, o.Group+"/"+strconv.Itoa(part+1))
		if err != nil || next.Gone {
			break // there is no further part
		}
		if p, err = read(next.Body); err != nil {
			return err
		}
		o.Key = next.Key
	}
	if err := b.Backend.Wish(ctx, wishes...); err != nil {
		return err
	}
	b.outbox.Wake(lane)
	return nil
}

// hole is what of an answer nobody can see.
type hole struct {
	parts []journal.Outgoing
	first bool // nothing in front of them failed, which would have been told of before
	rest  bool // something in front of them stands there
}

// missing are the parts of an answer that nobody can see, from one on.
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

// tellAsker tells whoever asked why there is no answer where they look for it, or only its beginning.
func (b *Bot) tellAsker(ctx context.Context, o journal.Outgoing, p post) error {
	if p.Ask != "" && p.AskIn != "" {
		body, _ := json.Marshal(post{Emoji: signUntold}) // strings only
		sign := journal.Desired{Lane: b.lane(p.AskIn), Key: "sign/" + p.Ask + "/" + signUntold, Thread: o.Thread, Seq: o.Seq, Thing: journal.Reaction,
			Target: p.Ask, Body: body, Final: true}
		if err := b.Backend.Wish(ctx, sign); err != nil {
			return err
		}
		b.outbox.Wake(sign.Lane)
	}
	if number(p.Asker) == 0 {
		return nil // a program, or nobody
	}
	direct, err := again(ctx, b.rest, "open direct messages", func(ctx context.Context) (*discord.DMChannel, error) {
		return b.rest.CreateDMChannel(number(p.Asker), rest.WithCtx(ctx))
	})
	if err != nil {
		return err
	}
	b.world.channel(*direct)
	lane := b.lane(direct.ID().String())
	hole, err := b.missing(ctx, o)
	if err != nil {
		return err
	}
	var words []journal.Desired
	for i, part := range hole.parts {
		if p, err = read(part.Body); err != nil {
			return err
		}
		for n, said := range insteadOf(part, p, hole.first && i == 0, hole.rest) {
			body, _ := json.Marshal(said) // strings only
			key := toldElsewhere + part.Key + strings.Repeat("/text", n)
			words = append(words, journal.Desired{Lane: lane, Key: key, Thread: o.Thread, Seq: o.Seq, Body: body, Final: true})
		}
	}
	if err := b.Backend.Wish(ctx, words...); err != nil {
		return err
	}
	b.outbox.Wake(lane)
	return nil
}

// insteadOf is what somebody is told instead of an answer, or of the rest of it: why, for its first part, and what it would have been.
// Where the words themselves may be the reason they are said apart: they may not be taken here either.
func insteadOf(o journal.Outgoing, p post, first, rest bool) []post {
	why, said := post{Text: whyUntold(o, rest)}, post{Text: p.Text, Card: p.Card, File: p.File, Content: p.Content, Blob: p.Blob}
	short := split.Length(why.Text)+split.Length(p.Text) < 1900
	suspect := o.Why == string(outbox.Broken) || o.Why == string(outbox.Invalid)
	switch {
	case !first:
		return []post{said}
	case p.Text == "" && p.Card == "" && p.File == "":
		return []post{why}
	case short && !suspect:
		said.Text = strings.TrimSpace(why.Text + "\n\n" + p.Text)
		return []post{said}
	default:
		return []post{why, said}
	}
}

// whyUntold says to a person why there is no answer, and what to do.
func whyUntold(o journal.Outgoing, rest bool) string {
	in, here := "<#"+o.Lane.Channel+">", "Here is what I wanted to say."
	if rest {
		here = "Here is the rest of what I wanted to say."
	}
	if takenAway(o) {
		return fmt.Sprintf("My message in %s was deleted before my answer was in it. %s", in, here)
	}
	switch outbox.Why(o.Why) {
	case outbox.Forbidden:
		return fmt.Sprintf("I may not write in %s. Whoever manages the server can allow it: Send Messages, and in threads Send Messages in Threads. %s", in, here)
	case outbox.Archived:
		return fmt.Sprintf("The thread %s is archived, and I may not open it again. %s", in, here)
	case outbox.Gone, outbox.Nowhere:
		return "The channel in which you asked is not there any more. " + here
	case outbox.Broken:
		return fmt.Sprintf("Discord failed again and again to show my answer in %s, and I have stopped trying. %s", in, here)
	default:
		return fmt.Sprintf("Discord did not take my answer in %s. %s", in, here)
	}
}

// reopened opens a thread again that was archived meanwhile; false: err was another one, or
// it cannot be opened: never, or not now, as the error says that is left.
func (b *Bot) reopened(ctx context.Context, channel string, err error) (bool, error) {
	if !rest.IsJSONErrorCode(err, rest.JSONErrorCodeOperationOnArchivedThread) {
		return false, err
	}
	archived := false
	_, refused := b.rest.UpdateChannel(number(channel), discord.GuildThreadUpdate{Archived: &archived}, rest.WithCtx(ctx))
	if refused != nil && passing(refused) {
		return false, refused
	}
	return refused == nil, err
}
