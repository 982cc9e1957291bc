package service

import (
	"context"
	"errors"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/work"
)

// workPlatform marks messages of the task queue, in arrivals and events.
const workPlatform = "work"

// SayWork sends a task's prompt to its worker, once per key. The worker acts for the task's owner: with their current rights and money.
func (o *Handler) SayWork(ctx context.Context, t work.Task, words, key string) (refused string, err error) {
	row, err := o.app.DB.Thread(ctx, t.Thread)
	if err != nil {
		return "", err
	}
	if why, err := o.Lapsed(ctx, t.Owner); err != nil || why != "" {
		return why, err
	}
	owner := t.Owner
	who := chat.Principal{Kind: chat.TaskWorker, ID: t.ID, Name: "task " + t.ID, For: &owner}
	said, err := o.SayUnattended(ctx, operation.Caller{Principal: who}, row, words,
		chat.Inbound{Principal: who, From: chat.Participant{ID: "queue", Name: "task queue", Kind: chat.System}, Platform: workPlatform, PlatformID: key})
	return said.Refused, err
}

// TellWork posts a message about a task in the conversation in which it was requested, once per key. The agent sees it,
// and does not answer. On chat platforms the connector itself informs people, based on the events of the work.
func (o *Handler) TellWork(ctx context.Context, t work.Task, words, key string) error {
	if t.Origin == "" || t.Origin.OnPlatform() || t.Origin.Transport() == chat.WorkTransport {
		return nil
	}
	if _, err := o.app.DB.Thread(ctx, t.Origin); err != nil {
		if errors.Is(err, journal.ErrUnknown) {
			return nil
		}
		return err
	}
	_, err := o.Engine.Deliver(ctx, chat.Inbound{Threads: []chat.ThreadID{t.Origin}, Principal: chat.Principal{Kind: chat.TheSystem, ID: "queue"},
		From: chat.Participant{ID: "queue", Name: "task queue", Kind: chat.System}, Blocks: chat.TextBlocks(words), Platform: workPlatform, PlatformID: key}, nil)
	return err
}

// lookedAt is how many events at a thread's end are searched for its last answer.
const lookedAt = 200

// LastAnswer returns what an agent said last in a thread; "": nothing.
func (o *Handler) LastAnswer(ctx context.Context, thread chat.ThreadID) (string, error) {
	row, err := o.app.DB.Thread(ctx, thread)
	if err != nil {
		return "", err
	}
	events, err := o.app.DB.Events(ctx, thread, max(row.Next-1-lookedAt, 0), lookedAt)
	answer := ""
	for _, e := range events {
		if said, ok := e.Body.(chat.Said); ok && said.Error == nil {
			if text := said.Blocks.Text(); text != "" {
				answer = text
			}
		}
	}
	return answer, err
}
