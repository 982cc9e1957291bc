package operations

import (
	"context"

	"chorus/internal/operation"
)

// SessionWork implements operations on a session's folder, its agent's notes and the prompts of its MCP servers.
type SessionWork interface {
	SessionDiff(context.Context, operation.Caller, SessionRef) (SessionChanges, error)
	SessionFiles(context.Context, operation.Caller, SessionFileQuery) (operation.List[SessionFile], error)
	SessionNotes(context.Context, operation.Caller, SessionRef) (operation.List[SessionNote], error)
	SetSessionNote(context.Context, operation.Caller, SessionNoteText) (SessionNote, error)
	ClearSessionNotes(context.Context, operation.Caller, SessionNoteRef) (ClearedNotes, error)
	SessionPrompts(context.Context, operation.Caller, SessionRef) (operation.List[SessionPrompt], error)
}

// SessionChanges are the changes in a session's repository since its last commit.
type SessionChanges struct {
	Text string `json:"text"` // one line per file; "": none
}

// SessionFileQuery says which files of a session's folder to find.
type SessionFileQuery struct {
	ID    string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	Match string `json:"match,omitempty" maxLen:"200" doc:"letters of the path, in their order; left out: any"`
	Limit int    `json:"limit,omitempty" min:"1" max:"200" default:"20" doc:"maximum number of results"`
}

// SessionFile is a file in a session's folder.
type SessionFile struct {
	Path string `json:"path"`
}

// SessionNote is one of the agent's work notes.
type SessionNote struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// SessionNoteText is the text of a work note.
type SessionNoteText struct {
	ID    string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	Key   string `json:"key" minLen:"1" maxLen:"100" doc:"the name of the note"`
	Value string `json:"value" minLen:"1" maxLen:"16384" doc:"its text"`
}

// SessionNoteRef names a work note.
type SessionNoteRef struct {
	ID  string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	Key string `json:"key,omitempty" maxLen:"100" doc:"only this note; left out: all of them"`
}

// ClearedNotes says how many notes were removed.
type ClearedNotes struct {
	Cleared int `json:"cleared"`
}

// SessionPrompt is a prompt of an MCP server of a session.
type SessionPrompt struct {
	Name  string `json:"name"`            // /server:prompt, as it is asked for
	Usage string `json:"usage"`           // with its arguments
	About string `json:"about,omitempty"` // in the server's own words
}

// The operations on a session's folder, notes and prompts.
var (
	SessionDiff = operation.New(operation.Info{Name: "session.diff", Help: "Show what has changed in a session's repository since its last commit", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "GET /api/sessions/{id}/diff", ID: "sessionDiff"}}}, SessionWork.SessionDiff)

	SessionFiles = operation.New(operation.Info{Name: "session.files", Help: "Find files in a session's folder by their names", Scope: operation.Read,
		Doc:    "Files that ignore files exclude are not found. In a very large folder, only the first part is searched.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/sessions/{id}/files", ID: "sessionFiles"}}}, SessionWork.SessionFiles)

	SessionNotes = operation.New(operation.Info{Name: "session.notes", Help: "List the work notes of a session's agent", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/sessions/{id}/notes", ID: "sessionNotes"}}}, SessionWork.SessionNotes)

	SetSessionNote = operation.New(operation.Info{Name: "session.note_set", Help: "Write a work note of a session's agent", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "PUT /api/sessions/{id}/notes", ID: "setSessionNote", Body: "SessionNoteText"}}}, SessionWork.SetSessionNote)

	ClearSessionNotes = operation.New(operation.Info{Name: "session.note_clear", Help: "Clear work notes of a session's agent", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/sessions/{id}/notes", ID: "clearSessionNotes"}}}, SessionWork.ClearSessionNotes)

	SessionPrompts = operation.New(operation.Info{Name: "session.prompts", Help: "List the prompts that a session's MCP servers offer", Scope: operation.Read,
		Doc:    "The servers start with the first message; before that, the list is empty.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/sessions/{id}/prompts", ID: "sessionPrompts"}}}, SessionWork.SessionPrompts)
)

func sessionWork() []operation.Any {
	return []operation.Any{SessionDiff, SessionFiles, SessionNotes, SetSessionNote, ClearSessionNotes, SessionPrompts}
}
