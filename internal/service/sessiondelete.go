package service

import (
	"context"
	"encoding/json"
	"time"

	"chorus/internal/approval"
	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/gate"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/room/threadname"
	"chorus/internal/store"
)

var _ operations.SessionDeleting = (*Handler)(nil)

// deletedMemos are the memos of deleted sessions. One exists until everything of its session is removed, or the session is restored.
const deletedMemos = "deleted session"

// deletion is what is known about a deleted session.
type deletion struct {
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Listing string    `json:"listing,omitempty"` // before
	Now     bool      `json:"now,omitempty"`     // nobody can restore it
}

// until is when a deleted session is removed for good.
func (s *Service) until(d deletion) time.Time {
	if d.Now {
		return d.At
	}
	return d.At.AddDate(0, 0, s.Shared.KeepDeleted)
}

// DeleteSession implements the operation of that name. The deletion takes effect last: after a kill, the session is
// either there as before, at most stopped, or deleted, and the next sweep erases what was to be erased at once.
func (o *Handler) DeleteSession(ctx context.Context, by operation.Caller, in operations.SessionDeletion) (operations.DeletedSession, error) {
	row, was, err := o.deletable(ctx, by, in)
	if err != nil {
		return operations.DeletedSession{}, err
	}
	if _, err := o.Engine.Abort(ctx, row.ID, by.Principal.String(), true); err != nil {
		return operations.DeletedSession{}, err
	}
	data, err := json.Marshal(was)
	if err != nil {
		return operations.DeletedSession{}, err
	}
	if err := o.app.DB.Remember(ctx, deletedMemos, string(row.ID), data); err != nil {
		return operations.DeletedSession{}, err
	}
	if err := o.Record(ctx, by, row.Agent, "session delete "+row.ID.Thread(), ""); err != nil {
		return operations.DeletedSession{}, err
	}
	if err := o.list(ctx, row.ID, store.Deleted); err != nil {
		return operations.DeletedSession{}, err
	}
	if was.Now {
		o.atRest(ctx, row.ID)
		_, err = o.app.erase(ctx, row.ID, was)
	}
	return o.deleted(row, was), err
}

// DeletedOnPlatform marks a session as deleted because it was deleted where it is held. It is not stopped: whoever asked
// last gets the answer elsewhere. The deletion takes effect last, as in DeleteSession. published is the last event that
// the platform was shown. false: it should be erased at once, but something still runs in it.
func (o *Handler) DeletedOnPlatform(ctx context.Context, thread chat.ThreadID, published int64) (bool, error) {
	row, err := o.app.DB.Thread(ctx, thread)
	if err != nil || row.Listing == store.Erased {
		return err == nil, err
	}
	was, known, err := o.app.deletion(ctx, thread)
	if err != nil {
		return false, err
	}
	if !known {
		was = deletion{By: thread.Transport(), At: o.app.DB.Now().UTC().Truncate(time.Second), Listing: row.Listing, Now: o.app.Shared.KeepDeleted == 0}
		data, err := json.Marshal(was)
		if err != nil {
			return false, err
		}
		if err := o.app.DB.Remember(ctx, deletedMemos, string(thread), data); err != nil {
			return false, err
		}
	}
	if row.Listing != store.Deleted {
		err := o.app.DB.Audit(ctx, approval.Audit{Agent: row.Agent, Principal: o.app.Me(), Action: "session delete " + thread.Thread(), Decision: gate.Changed,
			Detail: "it was deleted on " + thread.Transport()})
		if err == nil {
			err = o.list(ctx, thread, store.Deleted)
		}
		if err != nil {
			return false, err
		}
	}
	if !was.Now {
		return true, nil
	}
	unsent, err := o.app.DB.Unsent(ctx, thread)
	if err != nil || unsent > 0 || row.Status.On() || row.Waiting > 0 || published < row.Next-1 {
		return false, err
	}
	return o.app.erase(ctx, thread, was)
}

// deletable finds a session that the caller may delete, with its possible deletion.
func (o *Handler) deletable(ctx context.Context, by operation.Caller, in operations.SessionDeletion) (journal.Thread, deletion, error) {
	find := o.Find
	if in.Now {
		find = o.findDeleted // includes one that was deleted before
	}
	row, err := find(ctx, by, in.ID)
	if err == nil && row.Listing == store.Erased {
		err = noSession(in.ID)
	}
	if err == nil {
		err = o.MayKeep(by, row)
	}
	if err != nil {
		return row, deletion{}, err
	}
	switch t := row.ID.Transport(); {
	case chat.OnPlatform(t) && row.Listing != store.Deleted:
		return row, deletion{}, operation.Errorf(operation.Conflict, "session %s also exists on %s; delete its thread or its messages there, and they are deleted here too", row.ID.Thread(), t)
	case t != "web" && t != "cli" && !chat.OnPlatform(t):
		return row, deletion{}, operation.Errorf(operation.Conflict, "session %s belongs to a task; end the task instead", row.ID.Thread())
	}
	return row, deletion{By: by.Principal.String(), At: o.app.DB.Now().UTC().Truncate(time.Second), Listing: row.Listing, Now: in.Now || o.app.Shared.KeepDeleted == 0}, nil
}

// deleted returns a deletion as callers see it.
func (o *Handler) deleted(row journal.Thread, was deletion) operations.DeletedSession {
	out := operations.DeletedSession{ID: row.ID.Thread(), Title: threadname.Plain(o.app.Logs.Redactor().Clipped(row.Title)), At: was.At}
	if !was.Now {
		out.Until = o.app.until(was)
	}
	return out
}

// PreviewDeletion implements the operation of that name.
func (o *Handler) PreviewDeletion(ctx context.Context, by operation.Caller, in operations.SessionDeletion) (operations.DeletedSession, error) {
	row, was, err := o.deletable(ctx, by, in)
	if err != nil {
		return operations.DeletedSession{}, err
	}
	return o.deleted(row, was), nil
}

// maxDeletedListed is how many deleted sessions are listed.
const maxDeletedListed = 200

// ListDeletedSessions implements the operation of that name.
func (o *Handler) ListDeletedSessions(ctx context.Context, by operation.Caller, _ operation.None) (operation.List[operations.DeletedSession], error) {
	out := operation.List[operations.DeletedSession]{Items: []operations.DeletedSession{}}
	list, err := o.ListSessions(ctx, by, operations.SessionQuery{Listing: store.Deleted, Limit: maxDeletedListed})
	for _, s := range list.Items {
		out.Items = append(out.Items, operations.DeletedSession{ID: s.ID, Title: s.Title, At: s.MovedAt, Until: s.Until})
	}
	return out, err
}

// MayKeep says why somebody who sees a session may not manage it. A room does not belong to its first speaker.
func (o *Handler) MayKeep(by operation.Caller, row journal.Thread) error {
	owner := row.Owner
	if row.ID.OnPlatform() {
		bot, err := o.app.Settings.BotFor(row)
		if err != nil {
			return err
		}
		if bot.Routing == roomRouting {
			owner = chat.Principal{}
		}
	}
	if by.Keeps(row.ID, owner) {
		return nil
	}
	return operation.Errorf(operation.Forbidden, "only the person who started this conversation, people who may manage messages there and those who run this Chorus can do that")
}

// roomRouting is the routing of a channel that is one conversation of everybody in it.
const roomRouting = "room"

// restTime is how long a stopped run may take to end before its thread is erased, so that its last costs are known.
const restTime = 5 * time.Second

// atRest waits until a thread is idle, up to restTime.
func (o *Handler) atRest(ctx context.Context, thread chat.ThreadID) {
	ctx, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	for {
		if row, err := o.app.DB.Thread(ctx, thread); err != nil || !row.Status.On() {
			return
		}
		if !await.For(ctx, 20*time.Millisecond) { // another process may have the run, and nobody is notified of that
			return
		}
	}
}

// RestoreSession implements the operation of that name: the session is back where it was.
func (o *Handler) RestoreSession(ctx context.Context, by operation.Caller, in operations.DeletedSessionRef) (operations.Session, error) {
	row, err := o.findDeleted(ctx, by, in.ID)
	if err != nil {
		return operations.Session{}, err
	}
	deleted := row.Listing == store.Deleted
	if deleted {
		was, _, err := o.app.deletion(ctx, row.ID)
		if err != nil {
			return operations.Session{}, err
		}
		back, err := o.app.DB.BringBack(ctx, row.ID, was.Listing)
		if err != nil {
			return operations.Session{}, err
		}
		if !back {
			row.Listing = store.Erased // meanwhile
		}
		o.Engine.Relisted(row.ID)
	}
	if row.Listing == store.Erased {
		return operations.Session{}, operation.Errorf(operation.NotFound, "session %.80s cannot be restored: it was deleted too long ago, and its content is removed", row.ID.Thread())
	}
	if deleted {
		if err := o.Record(ctx, by, row.Agent, "session restore "+row.ID.Thread(), ""); err != nil {
			return operations.Session{}, err
		}
		if err := o.app.DB.Forget(ctx, deletedMemos, string(row.ID)); err != nil {
			return operations.Session{}, err
		}
	}
	return o.GetSession(ctx, by, operations.SessionRef{ID: string(row.ID)})
}

// deletion returns what is known about the deletion of a session; false: nothing.
func (s *Service) deletion(ctx context.Context, thread chat.ThreadID) (was deletion, ok bool, err error) {
	data, err := s.DB.Recall(ctx, deletedMemos, string(thread))
	if err != nil || data == nil {
		return was, false, err
	}
	return was, true, json.Unmarshal(data, &was)
}

// saysUntil adds to deleted sessions until when they can be restored.
func (o *Handler) saysUntil(ctx context.Context, rows []journal.Thread, shown []operations.Session) error {
	for i, row := range rows {
		if row.Listing != store.Deleted {
			continue
		}
		was, ok, err := o.app.deletion(ctx, row.ID)
		if err != nil {
			return err
		}
		if ok {
			shown[i].Until = o.app.until(was)
		}
	}
	return nil
}

func (o *Handler) list(ctx context.Context, thread chat.ThreadID, listing string) error {
	return o.setThread(ctx, thread, store.ThreadChange{Listing: &listing})
}

// setThread changes a thread's entry in lists, and notifies pages that show it.
func (o *Handler) setThread(ctx context.Context, thread chat.ThreadID, change store.ThreadChange) error {
	if err := o.app.DB.SetThread(ctx, thread, change); err != nil {
		return err
	}
	o.Engine.Relisted(thread)
	return nil
}
