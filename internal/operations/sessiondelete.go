package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// SessionDeleting carries out the deletion of sessions.
type SessionDeleting interface {
	// DeleteSession stops a session and takes it out of lists, searches and pages.
	DeleteSession(context.Context, operation.Caller, SessionDeletion) (DeletedSession, error)
	RestoreSession(context.Context, operation.Caller, DeletedSessionRef) (Session, error)
}

// SessionDeletion names a session that is to go.
type SessionDeletion struct {
	ID  string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	Now bool   `json:"now,omitempty" slash:"-" doc:"nobody wants it back: what was said in it is removed at once; also of a session that was deleted before"`
}

// DeletedSession is a session that was deleted.
type DeletedSession struct {
	ID    string    `json:"id"`
	Title string    `json:"title,omitempty"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero" doc:"until when it can be brought back; left out: what was said in it is gone"`
}

// DeletedSessionRef names a session that was deleted; those that are there are suggested elsewhere.
type DeletedSessionRef struct {
	ID string `json:"id" maxLen:"1024" doc:"the session's id, as chorus thread list --listing deleted has it"`
}

// The operations that delete sessions.
var (
	DeleteSession = operation.New(operation.Info{Name: "session.delete", Help: "Delete a session: it is stopped, and gone from lists, searches and pages", Scope: operation.Chat, Effect: operation.Destroys,
		Doc: "It can be brought back (session.restore) by whoever could see it, for as many days as keepDeleted says. Then, or at once with now, everything that was said and done in it is removed from the database: messages, answers, results of tools, files, the index of words and what it had saved. " +
			"Prices, the audit log and the numbers and times of its events stay. Links to it show nothing any more.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/sessions/{id}", ID: "deleteSession", Tag: "sessions"}},
		CLI: []operation.CLI{{Words: "thread delete", Args: "ID", Example: "  chorus thread delete 01k3 --yes\n  chorus thread delete 01k3 --now --yes\n  chorus thread list --listing deleted",
			Ask: "it can be brought back with chorus thread restore until it is erased, which `--now` does at once"}},
		Done: "{id} is deleted; until {until} chorus thread restore {id} brings it back"}, SessionDeleting.DeleteSession)

	RestoreSession = operation.New(operation.Info{Name: "session.restore", Help: "Bring a deleted session back", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "POST /api/sessions/{id}/restore", ID: "restoreSession", Tag: "sessions"}},
		CLI:    []operation.CLI{{Words: "thread restore", Args: "ID"}},
		Done:   "{id} is back"}, SessionDeleting.RestoreSession)
)

func sessionDeleting() []operation.Any { return []operation.Any{DeleteSession, RestoreSession} }
