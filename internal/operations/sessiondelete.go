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
	// PreviewDeletion gives what DeleteSession would, or why it would not.
	PreviewDeletion(context.Context, operation.Caller, SessionDeletion) (DeletedSession, error)
	ListDeletedSessions(context.Context, operation.Caller, operation.None) (operation.List[DeletedSession], error)
	RestoreSession(context.Context, operation.Caller, DeletedSessionRef) (Session, error)
}

// SessionDeletion names a session that is to go.
type SessionDeletion struct {
	ID  string `json:"id" maxLen:"1024" noun:"session" context:"session" slash:"thread" slashDoc:"Which conversation; left out: the one here" doc:"the session's id"`
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
	ID string `json:"id" maxLen:"1024" noun:"deletedSession" slash:"thread" slashDoc:"Which conversation, of those that were deleted" doc:"the session's id, as chorus thread list --listing deleted has it"`
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
		Slash: []operation.Slash{{Words: "thread delete", Help: "Delete a conversation; you are asked again, and it can be brought back for a while", First: "session.deletion",
			Ask:  "Delete {title:200} (`{id}`)? It is stopped, and gone from lists, searches and pages, and links to it show nothing any more.\nUntil {until:minute} `/thread restore` brings it back.",
			Show: "{title:200} (`{id}`) is deleted.\nUntil {until:minute} `/thread restore thread:{id}` brings it back."}},
		Done: "{id} is deleted; until {until} chorus thread restore {id} brings it back"}, SessionDeleting.DeleteSession)

	RestoreSession = operation.New(operation.Info{Name: "session.restore", Help: "Bring a deleted session back", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "POST /api/sessions/{id}/restore", ID: "restoreSession", Tag: "sessions"}},
		CLI:    []operation.CLI{{Words: "thread restore", Args: "ID", Example: "  chorus thread restore 01k3"}},
		Slash:  []operation.Slash{{Words: "thread restore", Help: "Bring a deleted conversation back", Example: "thread:01k3", Show: "{title:200} (`{id}`) is back."}},
		Done:   "{id} is back"}, SessionDeleting.RestoreSession)

	PreviewDeletion = operation.New(operation.Info{Name: "session.deletion", Help: "Say what deleting a session would do, or why it cannot be deleted", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "GET /api/sessions/{id}/deletion", ID: "previewDeletion", Tag: "sessions"}}}, SessionDeleting.PreviewDeletion)

	ListDeletedSessions = operation.New(operation.Info{Name: "deletedSession.list", Help: "List sessions that were deleted and can be brought back", Scope: operation.Read,
		Doc:   "The newest 200. Over HTTP it is the list of sessions with the listing deleted.",
		Slash: []operation.Slash{{Words: "thread deleted", Help: "Which conversations were deleted and can be brought back", Show: "- {title:100} (`{id}`), until {until:minute}"}},
		Label: "{title:60} ({id})", Empty: "Nothing was deleted that could be brought back."}, SessionDeleting.ListDeletedSessions)
)

func sessionDeleting() []operation.Any {
	return []operation.Any{DeleteSession, RestoreSession, PreviewDeletion, ListDeletedSessions}
}
