package connector

import (
	"context"
	"errors"
	"slices"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/render"
)

// replied takes a reply to a card as the answer to its approval. false means that it is
// an ordinary message. Repeating it changes nothing.
func (b *Bot) replied(ctx context.Context, m room.Message) (bool, error) {
	if m.ReplyTo == "" || m.System || m.Author.Program() {
		return false, nil
	}
	places, err := b.Backend.Places(ctx, b.transport, m.ReplyTo)
	if err == nil && len(places) == 0 && (m.Quoted == nil || m.Quoted.Own) {
		places, err = b.postedJustNow(ctx, m)
	}
	if err != nil {
		return false, err
	}
	for _, p := range places {
		id, onCard := strings.CutPrefix(p.Key, "ask/")
		if !p.Ours || !onCard || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		return b.answerBy(ctx, m, p.Thread, id)
	}
	return false, nil
}

// postedJustNow returns the conversation of a message of ours that is answered while we post it. Its id is known only once the platform
// has answered our call or reported the message, and the reply can be faster than both.
func (b *Bot) postedJustNow(ctx context.Context, m room.Message) ([]journal.Place, error) {
	if err := b.settled(ctx, b.Lane(m.In.ID)); err != nil {
		return nil, err
	}
	return b.Backend.Places(ctx, b.transport, m.ReplyTo)
}

// answerBy answers an approval with a message.
func (b *Bot) answerBy(ctx context.Context, m room.Message, thread chat.ThreadID, id string) (bool, error) {
	order, note, plain := activate.Answered(m.Text)
	if order == activate.None {
		return false, nil
	}
	by, yes := b.Principal(m.Author), order == activate.Approve
	a, err := b.Backend.Approval(ctx, id)
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return false, nil
	case err != nil:
		return false, err
	}
	if approval.IsQuestion(a.Actions) && !plain {
		yes, note = true, strings.TrimSpace(m.Text) // the text is the answer
	}
	said := func(v approval.Vote) bool { return v.By.String() == by.String() && v.OK == yes && v.Note == note }
	if slices.ContainsFunc(a.Votes, said) {
		return true, b.acknowledge(ctx, m, yes) // already taken
	}
	if a.State == approval.Open {
		if _, err := approval.Weigh(a, by, yes); err != nil {
			if !plain {
				return false, nil // somebody who may not answer talks about it
			}
			return true, b.answerTo(ctx, m, b.mayNot(a, by))
		}
		err = b.Backend.Answer(ctx, id, by, yes, note)
		if err == nil {
			b.publisher.Wake(context.WithoutCancel(ctx), thread)
			return true, b.acknowledge(ctx, m, yes)
		}
		if !errors.Is(err, journal.ErrSettled) {
			return true, b.answerTo(ctx, m, b.UserMessage(err))
		}
		if a, err = b.Backend.Approval(ctx, id); err != nil {
			return false, err
		}
	}
	if !plain {
		return false, nil // the approval is decided: this is a message for the conversation
	}
	return true, b.answerTo(ctx, m, b.tooLate(a))
}

// acknowledge shows that an answer was taken: by a reaction, or in words if there are none.
func (b *Bot) acknowledge(ctx context.Context, m room.Message, yes bool) error {
	if b.caps.Reactions {
		return b.react(ctx, m.In.ID, m.ID, render.SignDone)
	}
	if yes {
		return b.answerTo(ctx, m, render.SignDone+" approved")
	}
	return b.answerTo(ctx, m, render.SignNot+" refused")
}

// answerTo replies, once, to a message that no conversation took.
func (b *Bot) answerTo(ctx context.Context, m room.Message, text string) error {
	return b.SetDesired(ctx, journal.Desired{Lane: b.Lane(m.In.ID), Key: "told/" + m.ID,
		Body: platform.Post{Text: b.Backend.Redact(text), ReplyTo: m.ID}.Body(), Final: true})
}
