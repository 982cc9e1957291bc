package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/room/threadname"
	"chorus/internal/transcript"
	"chorus/internal/window"
)

// platform marks what came over HTTP, in arrivals and events.
const platform = "http"

// maxKey is longer than any key of a client.
const maxKey = 255

// keyed is a key in the journal, unique within one session.
func keyed(thread chat.ThreadID, key string) (string, error) {
	if len(key) > maxKey {
		return "", operation.InvalidField("Idempotency-Key", "the key is longer than %d bytes", maxKey)
	}
	if key == "" {
		return "", nil
	}
	return thread.Thread() + "/" + key, nil
}

// from returns a caller as a participant.
func from(p chat.Principal) chat.Participant {
	return chat.Participant{ID: p.ID, Name: cmp.Or(p.Name, p.ID), Kind: chat.Person}
}

// Say implements the operation of that name.
func (o *Handler) Say(ctx context.Context, by operation.Caller, in operations.Message) (operations.Said, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Said{}, err
	}
	said, err := o.say(ctx, by, row, operations.SteerMessage{Message: in.Message, Attachments: in.Attachments, Key: in.Key})
	return said, err
}

// prompt is a message, ready for a thread.
type prompt struct {
	blocks chat.Blocks
	terms  chat.Terms
	intake chat.Intake
	key    string
}

// newPrompt prepares a message and lets the thread run here.
func (o *Handler) newPrompt(ctx context.Context, by operation.Caller, row journal.Thread, in operations.SteerMessage) (prompt, error) {
	if err := o.MayWork(by, row); err != nil {
		return prompt{}, err
	}
	if err := o.unarchive(ctx, row); err != nil {
		return prompt{}, err
	}
	bot, err := o.app.Settings.BotFor(row)
	if err != nil {
		return prompt{}, err
	}
	blocks, err := o.words(ctx, row, in, bot)
	if err != nil {
		return prompt{}, err
	}
	key, err := keyed(row.ID, in.Key)
	if err != nil {
		return prompt{}, err
	}
	made, err := o.Standing(ctx, row.ID)
	if err != nil {
		return prompt{}, err
	}
	if !o.guest {
		made.Terms.By = ServedBy
	}
	o.runHere(row.ID)
	return prompt{blocks, made.Terms, chat.Intake(bot.Intake), key}, nil
}

func (o *Handler) say(ctx context.Context, by operation.Caller, row journal.Thread, in operations.SteerMessage) (operations.Said, error) {
	u, err := o.newPrompt(ctx, by, row, in)
	if err != nil {
		return operations.Said{}, err
	}
	inbound := chat.Inbound{Threads: []chat.ThreadID{row.ID}, Principal: by.Acting(), From: from(by.Principal), Prompt: true,
		Intake: u.intake, Blocks: u.blocks, Terms: u.terms}
	if u.key != "" {
		inbound.Platform, inbound.PlatformID = platform, u.key
	}
	for ; ; inbound.Version++ {
		got, err := o.Engine.Deliver(ctx, inbound, nil)
		if err != nil {
			return operations.Said{}, err
		}
		if !got[0].Again {
			if got[0].Refused != "" {
				return operations.Said{}, operation.Errorf(operation.Busy, "%s; wait for an answer, or stop the run", got[0].Refused)
			}
			return operations.Said{Seq: got[0].Seq, Position: position(row, got[0].Waiting)}, nil
		}
		said, refused, err := o.before(ctx, row.ID, inbound)
		if err != nil || !refused {
			return said, err
		}
		// A refusal frees the key: the same message is a new attempt.
	}
}

// position is how many messages are answered before the newest waiting one.
func position(row journal.Thread, waiting int) int {
	ahead := waiting - 1
	if row.Status.On() {
		ahead++
	}
	return max(0, ahead)
}

// before returns what happened to a message that was sent before.
func (o *Handler) before(ctx context.Context, thread chat.ThreadID, in chat.Inbound) (said operations.Said, refused bool, err error) {
	ev, err := o.app.DB.Find(ctx, thread, in.Platform, in.PlatformID, chat.KindReceived, in.Version)
	if err != nil {
		return said, false, err
	}
	next, err := o.app.DB.Events(ctx, thread, ev.Seq, 1)
	if err != nil {
		return said, false, err
	}
	if len(next) == 1 {
		no, ok := next[0].Body.(chat.Refused)
		refused = ok && no.Seq == ev.Seq
	}
	return operations.Said{Seq: ev.Seq, Again: true}, refused, nil
}

// Steer implements the operation of that name.
func (o *Handler) Steer(ctx context.Context, by operation.Caller, in operations.SteerMessage) (operations.Said, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Said{}, err
	}
	if !row.Status.On() {
		said, err := o.say(ctx, by, row, in)
		said.AsPrompt = true
		return said, err
	}
	said, err := o.steer(ctx, by, row, in)
	said.Title = o.titleOf(row)
	return said, err
}

// titleOf is a session's title for people, without secrets; its id if it has none.
func (o *Handler) titleOf(row journal.Thread) string {
	return cmp.Or(threadname.Plain(o.app.Logs.Redactor().Clipped(row.Title)), row.ID.Thread())
}

func (o *Handler) steer(ctx context.Context, by operation.Caller, row journal.Thread, in operations.SteerMessage) (operations.Said, error) {
	u, err := o.newPrompt(ctx, by, row, in)
	if err != nil {
		return operations.Said{}, err
	}
	got, err := o.Engine.SteerOnce(ctx, row.ID, chat.Steered{From: from(by.Principal), Principal: by.Acting(), Blocks: u.blocks, Mode: in.Mode, Terms: u.terms}, platform, u.key)
	if err != nil || !got.Again {
		return operations.Said{Seq: got.Seq}, err
	}
	ev, err := o.app.DB.Find(ctx, row.ID, platform, u.key, chat.KindSteered, 0)
	return operations.Said{Seq: ev.Seq, Again: true}, err
}

// Abort implements the operation of that name.
func (o *Handler) Abort(ctx context.Context, by operation.Caller, in operations.AbortRequest) (operations.Aborted, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Aborted{}, err
	}
	if err := o.mayStop(ctx, by, row); err != nil {
		return operations.Aborted{}, err
	}
	ended, err := o.Engine.Abort(ctx, row.ID, by.Principal.String(), in.All)
	return operations.Aborted{Aborted: ended, Title: o.titleOf(row)}, err
}

// mayStop says why somebody who sees a session may not stop it: they neither manage it nor asked for its current run.
func (o *Handler) mayStop(ctx context.Context, by operation.Caller, row journal.Thread) error {
	refused := o.MayKeep(by, row)
	if operation.KindOf(refused) != operation.Forbidden {
		return refused
	}
	log, err := o.app.LogAt(ctx, row.ID, row.Next-1)
	if err != nil {
		return err
	}
	asked := func(s transcript.Sender) bool { return s.Principal.String() == by.Principal.String() }
	if run := log.Run(); run != nil && slices.ContainsFunc(run.Senders, asked) {
		return nil
	}
	return operation.Errorf(operation.Forbidden, "only the person who asked, or somebody who may manage messages here, can stop this")
}

// CheckOwner looks once, at the start, for runs and prompts of terminal threads that came over HTTP to an earlier process, and continues them.
func (o *Handler) CheckOwner(ctx context.Context) error {
	rows, err := o.app.DB.ActiveThreads(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.ID.Transport() != "cli" {
			continue
		}
		ours, err := o.cameThrough(ctx, row)
		if err != nil {
			return fmt.Errorf("look at %s: %w", row.ID, err)
		}
		if ours {
			o.runHere(row.ID)
			o.Engine.Wake(row.ID)
		}
	}
	return nil
}

// cameThrough reports whether the pending work of a thread was requested over HTTP.
func (o *Handler) cameThrough(ctx context.Context, row journal.Thread) (bool, error) {
	seqs, err := o.app.DB.PendingPrompts(ctx, row.ID)
	if err != nil {
		return false, err
	}
	if row.Status == chat.Running {
		at, err := o.app.DB.LastRunAt(ctx, row.ID)
		if err != nil {
			return false, err
		}
		seqs = append(seqs, at)
	}
	for _, seq := range seqs {
		ev, err := o.app.DB.Event(ctx, row.ID, seq)
		if errors.Is(err, journal.ErrUnknown) {
			continue
		}
		if err != nil {
			return false, err
		}
		if termsOf(ev.Body).By == ServedBy {
			return true, nil
		}
	}
	return false, nil
}

func termsOf(body chat.Body) chat.Terms {
	switch b := body.(type) {
	case chat.Received:
		return b.Terms
	case chat.Steered:
		return b.Terms
	case chat.RunStarted:
		return b.Terms
	default:
		return chat.Terms{}
	}
}

// Clipped shortens a message to the limit of agents.
func Clipped(text string, most int) string {
	return window.Clip(strings.ToValidUTF8(text, "\uFFFD"), most)
}
