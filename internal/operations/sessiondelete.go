package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// SessionDeleting implements the deletion of sessions.
type SessionDeleting interface {
	// DeleteSession stops a session and removes it from lists, searches and pages.
	DeleteSession(context.Context, operation.Caller, SessionDeletion) (DeletedSession, error)
	// PreviewDeletion returns the result of DeleteSession, or its error.
	PreviewDeletion(context.Context, operation.Caller, SessionDeletion) (DeletedSession, error)
	ListDeletedSessions(context.Context, operation.Caller, operation.None) (operation.List[DeletedSession], error)
	RestoreSession(context.Context, operation.Caller, DeletedSessionRef) (Session, error)
}

// SessionDeletion names a session to delete.
type SessionDeletion struct {
	ID  string `json:"id" maxLen:"1024" noun:"session" context:"session" slash:"thread" slashDoc:"Which conversation; left out: the one here" doc:"the session's id"`
	Now bool   `json:"now,omitempty" slash:"-" doc:"remove its content at once, so that it cannot be restored; also works for a session that is already deleted"`
}

// DeletedSession is a session that was deleted.
type DeletedSession struct {
	ID    string    `json:"id"`
	Title string    `json:"title,omitempty"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero" doc:"until when it can be restored; left out: its content is removed"`
}

// DeletedSessionRef names a deleted session; others are suggested elsewhere.
type DeletedSessionRef struct {
	ID string `json:"id" maxLen:"1024" noun:"deletedSession" slash:"thread" slashDoc:"Which deleted conversation" doc:"the session's id, as chorus thread list --listing deleted has it"`
}

// The operations that delete sessions.
var (
	DeleteSession = operation.New(operation.Info{Name: "session.delete", Help: "Delete a session: it is stopped and disappears from lists, searches and pages", Scope: operation.Chat, Effect: operation.Destroys,
		Doc: "Whoever could see it can restore it (session.restore) for as many days as keepDeleted says. After that, or at once with now, its content is removed from the database: messages, answers, results of tools, files, the search index and what it had saved. " +
			"Costs, the audit log and the numbers and times of its events are kept. Links to it show nothing.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/sessions/{id}", ID: "deleteSession", Tag: "sessions"}},
		CLI: []operation.CLI{{Words: "thread delete", Args: "ID", Example: "  chorus thread delete 01k3 --yes\n  chorus thread delete 01k3 --now --yes\n  chorus thread list --listing deleted",
			Ask: "chorus thread restore brings it back until it is erased, which `--now` does at once"}},
		Slash: []operation.Slash{{Words: "thread delete", Help: "Delete a conversation; it asks you to confirm, and you can restore it for a while", First: "session.deletion",
			Ask:  "Delete {title:200} (`{id}`)? It is stopped and disappears from lists, searches and pages, and links to it show nothing.\nUntil {until:minute} `/thread restore` brings it back.",
			Show: "{title:200} (`{id}`) is deleted.\nUntil {until:minute} `/thread restore thread:{id}` brings it back."}},
		Done: "{id} is deleted; until {until} chorus thread restore {id} brings it back"}, SessionDeleting.DeleteSession)

	RestoreSession = operation.New(operation.Info{Name: "session.restore", Help: "Restore a deleted session", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "POST /api/sessions/{id}/restore", ID: "restoreSession", Tag: "sessions"}},
		CLI:    []operation.CLI{{Words: "thread restore", Args: "ID", Example: "  chorus thread restore 01k3"}},
		Slash:  []operation.Slash{{Words: "thread restore", Help: "Restore a deleted conversation", Example: "thread:01k3", Show: "{title:200} (`{id}`) is restored."}},
		Done:   "{id} is restored"}, SessionDeleting.RestoreSession)

	PreviewDeletion = operation.New(operation.Info{Name: "session.deletion", Help: "Show what deleting a session would do, or why it cannot be deleted", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "GET /api/sessions/{id}/deletion", ID: "previewDeletion", Tag: "sessions"}}}, SessionDeleting.PreviewDeletion)

	ListDeletedSessions = operation.New(operation.Info{Name: "deletedSession.list", Help: "List deleted sessions that can be restored", Scope: operation.Read,
		Doc:   "The newest 200. Over HTTP, list sessions with the listing deleted.",
		Slash: []operation.Slash{{Words: "thread deleted", Help: "List deleted conversations that can be restored", Show: "- {title:100} (`{id}`), until {until:minute}"}},
		Label: "{title:60} ({id})", Empty: "There are no deleted conversations to restore."}, SessionDeleting.ListDeletedSessions)
)

func sessionDeleting() []operation.Any {
	return []operation.Any{DeleteSession, RestoreSession, PreviewDeletion, ListDeletedSessions}
}
