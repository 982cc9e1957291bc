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

// Unattended is what happened to a message that nobody waits for.
type Unattended struct {
	Seq     int64  // of the prompt
	Refused string // why there is none, permanently
}

// SayUnattended sends a message to a thread, once per key of the platform: for schedules, hooks, processes and tasks.
// The authority of in says whose rights and money it uses, and by the caller's additional rights.
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

// maxAnswered limits the search for where a thread is answered.
const maxAnswered = 1000

// AnsweredIn returns the newest prompt of a conversation on a platform: the next answer goes to the same place.
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

// Lapsed says why nothing may be done in somebody's name any more, for example because their token was revoked. "": it may.
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
