package service

import (
	"context"
	"encoding/json"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/store"
)

var _ operations.SessionDeleting = (*Handler)(nil)

// deletedMemos are the memos of sessions that were deleted.
const deletedMemos = "deleted session"

// deletion is what is known of a session that was deleted.
type deletion struct {
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Listing string    `json:"listing,omitempty"` // before
}

// DeleteSession carries out the operation of that name. What becomes true last is that the session is gone: after a kill it is there
// as before, at most stopped.
func (o *Handler) DeleteSession(ctx context.Context, by operation.Caller, in operations.SessionRef) (operations.DeletedSession, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.DeletedSession{}, err
	}
	if t := row.ID.Transport(); t != "web" && t != "cli" {
		return operations.DeletedSession{}, operation.Errorf(operation.Conflict, "session %s is not only this Chorus's: it is a conversation on %s, or the work on a task; end it there", row.ID.Thread(), t)
	}
	if _, err := o.Engine.Abort(ctx, row.ID, by.Principal.String(), true); err != nil {
		return operations.DeletedSession{}, err
	}
	at := time.Now().UTC().Truncate(time.Second)
	data, err := json.Marshal(deletion{By: by.Principal.String(), At: at, Listing: row.Listing})
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
	return operations.DeletedSession{ID: row.ID.Thread(), Title: o.app.Logs.Redactor().Clipped(row.Title), At: at}, nil
}

// RestoreSession carries out the operation of that name: the session is where it was.
func (o *Handler) RestoreSession(ctx context.Context, by operation.Caller, in operations.DeletedSessionRef) (operations.Session, error) {
	row, err := o.findDeleted(ctx, by, in.ID)
	if err != nil {
		return operations.Session{}, err
	}
	if row.Listing == store.Deleted {
		var was deletion
		data, err := o.app.DB.Recall(ctx, deletedMemos, string(row.ID))
		if err == nil && data != nil {
			err = json.Unmarshal(data, &was)
		}
		if err != nil {
			return operations.Session{}, err
		}
		if err := o.list(ctx, row.ID, was.Listing); err != nil {
			return operations.Session{}, err
		}
		if err := o.Record(ctx, by, row.Agent, "session restore "+row.ID.Thread(), ""); err != nil {
			return operations.Session{}, err
		}
	}
	return o.GetSession(ctx, by, operations.SessionRef{ID: string(row.ID)})
}

func (o *Handler) list(ctx context.Context, thread chat.ThreadID, listing string) error {
	return o.app.DB.SetThread(ctx, thread, store.ThreadChange{Listing: &listing})
}
