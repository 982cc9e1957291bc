package service

import (
	"cmp"
	"context"
	"errors"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// Unattended is what became of words that nobody waits for.
type Unattended struct {
	Seq     int64  // of the prompt
	Refused string // why there is none, for good
}

// SayUnattended gives words to a thread, once for a key of the platform: what schedules, hooks, processes and tasks say. The authority of
// in is whose rights and money it takes, by what the caller may besides.
func (o *Handler) SayUnattended(ctx context.Context, by operation.Caller, row journal.Thread, words string, in chat.Inbound) (Unattended, error) {
	u, err := o.newPrompt(ctx, by, row, operations.SteerMessage{Message: words})
	if no := (*operation.Error)(nil); errors.As(err, &no) && no.Kind != operation.Failed {
		return Unattended{Refused: no.Message}, nil
	}
	if err != nil {
		return Unattended{}, err
	}
	at, err := o.AnsweredIn(ctx, row)
	if err != nil {
		return Unattended{}, err
	}
	in.Threads, in.Prompt, in.Fired, in.Intake, in.Blocks, in.Terms = []chat.ThreadID{row.ID}, true, true, cmp.Or(in.Intake, chat.Queue), u.blocks, u.terms
	in.Channel, in.Post, in.Together = at.Channel, at.Post, at.Together
	got, err := o.Engine.Deliver(ctx, in, nil)
	if err != nil {
		return Unattended{}, err
	}
	if !got[0].Again {
		return Unattended{Seq: got[0].Seq, Refused: got[0].Refused}, nil
	}
	said, refused, err := o.before(ctx, row.ID, in)
	result := Unattended{Seq: said.Seq}
	if refused {
		result.Refused = "there were too many prompts waiting"
	}
	return result, err
}

// maxAnswered is how far back it is looked for where a thread is answered.
const maxAnswered = 1000

// AnsweredIn is the newest prompt of a conversation on a platform: what comes next is answered where that was.
func (o *Handler) AnsweredIn(ctx context.Context, row journal.Thread) (chat.Received, error) {
	var at chat.Received
	if !row.ID.OnPlatform() {
		return at, nil
	}
	for ev, err := range o.app.DB.AllEvents(ctx, row.ID, max(0, row.Next-maxAnswered)) {
		if err != nil {
			return at, err
		}
		if said, ok := ev.Body.(chat.Received); ok && said.Prompt && said.Channel != "" {
			at = said
		}
	}
	return at, nil
}

// Lapsed says why nothing may be done any more in the name of somebody who asked for it once: a token may have been revoked since. "":
// it may.
func (o *Handler) Lapsed(ctx context.Context, owner chat.Principal) (why string, err error) {
	if owner.Kind != chat.TokenHolder || owner.Owns() {
		return "", nil
	}
	token, err := o.app.DB.TokenByID(ctx, owner.ID)
	if err != nil && !errors.Is(err, journal.ErrUnknown) {
		return "", err
	}
	if err != nil || !token.Revoked.IsZero() || !token.Expires.IsZero() && !token.Expires.After(o.app.Now()) {
		return "its owner's token was revoked or has expired", nil
	}
	return "", nil
}
