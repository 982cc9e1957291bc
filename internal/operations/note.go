package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Notes implements operations on the notes of projects.
type Notes interface {
	ListNotes(context.Context, operation.Caller, NoteQuery) (operation.List[Note], error)
	WriteNote(context.Context, operation.Caller, NoteText) (Note, error)
	AppendNote(context.Context, operation.Caller, NoteAddition) (Note, error)
	ReadNote(context.Context, operation.Caller, NoteRef) (Note, error)
	DeleteNote(context.Context, operation.Caller, NoteRef) (Note, error)
	PromoteNote(context.Context, operation.Caller, NotePromotion) (Task, error)
	CompareSpecsNotes(context.Context, operation.Caller, SpecsQuery) (SpecsNotes, error)
	OpenNotesThread(context.Context, operation.Caller, NotesThreadStart) (NotesThread, error)
}

// NotesThreadStart says for which project to take notes.
type NotesThreadStart struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Key     string `json:"-" key:"true"`
}

// NotesThread is a thread on a chat platform in which every message becomes a note of a project.
type NotesThread struct {
	ID      string `json:"threadId"`
	Project string `json:"projectId"`
}

// NoteQuery selects a project's notes.
type NoteQuery struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Page
}

// NoteRef names a note.
type NoteRef struct {
	Title   string `json:"title" minLen:"1" maxLen:"200" doc:"its title or its file name"`
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
}

// NoteText is the text of a note.
type NoteText struct {
	Title   string `json:"title" minLen:"1" maxLen:"200" doc:"its title; the file name is derived from it"`
	Content string `json:"content" maxLen:"1000000" doc:"Markdown"`
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
}

// NoteAddition is text to add to a note.
type NoteAddition struct {
	Title   string `json:"title" minLen:"1" maxLen:"200" doc:"the note's title or its file name"`
	Content string `json:"content" minLen:"1" maxLen:"1000000" doc:"Markdown"`
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Key     string `json:"-" key:"true"`
}

// NotePromotion turns a note into a task.
type NotePromotion struct {
	Title    string `json:"title" minLen:"1" maxLen:"200" doc:"the note's title or its file name"`
	Project  string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Priority int    `json:"priority,omitempty" min:"1" max:"1000000" doc:"of the task; lower is sooner; left out: 100"`
	Approval bool   `json:"requiresApproval,omitempty" tool:"requires_approval" cli:"approval" slash:"approval" doc:"require approval before the result is merged"`
	Key      string `json:"-" key:"true"`
}

// SpecsQuery says which specifications to list with the notes.
type SpecsQuery struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Path    string `json:"specsPath,omitempty" maxLen:"1024" tool:"specs_path" cli:"specs" slash:"specs" doc:"a folder of the project's repository; left out: specs"`
}

// Note is a page of Markdown that belongs to a project.
type Note struct {
	Name     string    `json:"name"` // of its file
	Title    string    `json:"title"`
	Project  string    `json:"projectId"`
	Path     string    `json:"path"`
	Status   string    `json:"status,omitempty"` // created, updated, appended or deleted
	Size     int64     `json:"sizeBytes"`
	Content  string    `json:"content,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
}

// SpecsNotes are the specifications of a project next to its notes.
type SpecsNotes struct {
	Project   string `json:"projectId"`
	Specs     []Note `json:"specs"`
	Notes     []Note `json:"notes"`
	SpecsPath string `json:"specsPath"`
	NotesPath string `json:"notesPath"`
	// Truncated means that there are more specifications or notes.
	Truncated bool `json:"truncated,omitempty"`
}

// The operations on notes.
var (
	ListNotes = operation.New(operation.Info{Name: "note.list", Help: "List the notes of a project", Scope: operation.Read,
		Errors:  []operation.Kind{operation.NotFound},
		HTTP:    []operation.HTTP{{Route: "GET /api/notes", ID: "listNotes"}},
		CLI:     []operation.CLI{{Words: "note list"}},
		Slash:   []operation.Slash{{Words: "note list"}},
		Tool:    "list_notes",
		Columns: "FILE=name | TITLE=title:60 | BYTES=sizeBytes | CHANGED=modified:minute",
		Empty:   "there are no notes; write one: chorus note write 'Release plan' '…' -p PROJECT"}, Notes.ListNotes)

	WriteNote = operation.New(operation.Info{Name: "note.write", Help: "Write a note, or replace its text", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "PUT /api/notes", ID: "writeNote", Body: "NoteText"}},
		CLI:    []operation.CLI{{Words: "note write", Args: "TITLE CONTENT", Example: "  chorus note write 'Release plan' '# Release plan' -p my-web-app"}},
		Slash:  []operation.Slash{{Words: "note write"}},
		Tool:   "write_note", Done: "{name} is {status}"}, Notes.WriteNote)

	AppendNote = operation.New(operation.Info{Name: "note.append", Help: "Add to a note, and create it if it is missing", Scope: operation.Chat, Effect: operation.Creates,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/notes", ID: "appendNote", Body: "NoteAddition", Status: 200}},
		CLI:    []operation.CLI{{Words: "note append", Args: "TITLE CONTENT"}},
		Slash:  []operation.Slash{{Words: "note append"}},
		Tool:   "append_note", Done: "{name}: {status}"}, Notes.AppendNote)

	ReadNote = operation.New(operation.Info{Name: "note.read", Help: "Show a note", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/notes/{title}", ID: "readNote"}},
		CLI:    []operation.CLI{{Words: "note read", Args: "TITLE"}},
		Slash:  []operation.Slash{{Words: "note read", Show: "**{title}**\n{content}"}},
		Tool:   "read_note"}, Notes.ReadNote)

	DeleteNote = operation.New(operation.Info{Name: "note.delete", Help: "Delete a note", Scope: operation.Chat, Effect: operation.Destroys,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/notes/{title}", ID: "deleteNote"}},
		CLI:    []operation.CLI{{Words: "note delete", Args: "TITLE"}},
		Slash:  []operation.Slash{{Words: "note delete"}},
		Tool:   "delete_note", Done: "{name} is deleted"}, Notes.DeleteNote)

	PromoteNote = operation.New(operation.Info{Name: "note.promote", Help: "Turn a note into a task", Scope: operation.Chat, Effect: operation.Creates,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/notes/{title}/promote", ID: "promoteNote", Body: "NotePromotion", Status: 201}},
		CLI:    []operation.CLI{{Words: "note promote", Args: "TITLE"}},
		Slash:  []operation.Slash{{Words: "note promote"}},
		Tool:   "promote_note", Done: "task {id} is {status}"}, Notes.PromoteNote)

	CompareSpecsNotes = operation.New(operation.Info{Name: "note.specs", Help: "List a project's specifications, next to its notes", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/notes/specs", ID: "compareSpecsNotes"}},
		CLI:    []operation.CLI{{Words: "note specs"}},
		Slash:  []operation.Slash{{Words: "note specs"}},
		Tool:   "compare_specs_notes"}, Notes.CompareSpecsNotes)

	OpenNotesThread = operation.New(operation.Info{Name: "note.thread", Help: "Open a thread in which every message becomes a note of a project", Scope: operation.Chat, Effect: operation.Creates,
		Doc:    "The thread is opened in the project's channel, or where you ask for it. The agent there sorts each message into a note and confirms it in one line.",
		Errors: []operation.Kind{operation.NotFound, operation.Forbidden, operation.Unavailable},
		HTTP:   []operation.HTTP{{Route: "POST /api/notes/thread", ID: "openNotesThread", Body: "NotesThreadStart", Status: 201}},
		CLI:    []operation.CLI{{Words: "note thread", Example: "  chorus note thread -p my-web-app"}},
		Slash:  []operation.Slash{{Words: "note thread", Example: "project:my-web-app", Show: "<#{threadId}> takes notes for {projectId}: think aloud there."}},
		Tool:   "open_notes_thread", Done: "thread {threadId} takes notes for {projectId}"}, Notes.OpenNotesThread)
)

func notes() []operation.Any {
	return []operation.Any{ListNotes, WriteNote, AppendNote, CompareSpecsNotes, OpenNotesThread, ReadNote, DeleteNote, PromoteNote}
}
