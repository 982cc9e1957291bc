package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// SavedContexts implements the operations on what was saved of sessions, to go back to it later.
type SavedContexts interface {
	SaveContext(context.Context, operation.Caller, NewContext) (SavedContext, error)
	ListContexts(context.Context, operation.Caller, SessionRef) (operation.List[SavedContext], error)
	GetContext(context.Context, operation.Caller, ContextRef) (SavedContext, error)
	RestoreContext(context.Context, operation.Caller, ContextRef) (RestoredContext, error)
	DeleteContext(context.Context, operation.Caller, ContextRef) (SavedContext, error)
}

// NewContext says what to save.
type NewContext struct {
	Description string `json:"description,omitempty" maxLen:"1000" slashDoc:"A description to find it by" doc:"a description to find it by"`
	ID          string `json:"id" maxLen:"1024" noun:"session" context:"session" slash:"thread" slashDoc:"Which conversation; left out: the one here" doc:"the session's id"`
	Key         string `json:"-" key:"true"`
}

// ContextRef names a saved context of a session.
type ContextRef struct {
	ID      string `json:"id" maxLen:"1024" noun:"session" context:"session" slash:"thread" slashDoc:"Which conversation; left out: the one here" doc:"the session's id"`
	Context string `json:"context" minLen:"1" maxLen:"64" noun:"context" slashDoc:"The saved context's id, or the start of it" doc:"the saved context's id, or the start of it"`
}

// SavedContext is what an agent saw of a conversation when somebody saved it.
type SavedContext struct {
	ID          string    `json:"id"`
	SessionID   string    `json:"sessionId" doc:"the session that was asked about; others in the same place may be saved in it too"`
	Description string    `json:"description,omitempty"`
	Summary     string    `json:"summary" doc:"what it is about, in a model's words"`
	Messages    int       `json:"messages"`
	SavedAt     time.Time `json:"savedAt"`
	By          string    `json:"by"`
	ByName      string    `json:"byName,omitempty"`
	Automatic   bool      `json:"automatic,omitempty" doc:"it was saved because nobody had spoken for a while"`
}

// RestoredContext says what was restored.
type RestoredContext struct {
	SavedContext
	Restored int `json:"restored" doc:"how many messages the agent sees again"`
}

// The operations on saved contexts.
var (
	SaveContext = operation.New(operation.Info{Name: "context.save", Help: "Save what the agent sees of a session, with a summary, to go back to it later", Scope: operation.Chat, Effect: operation.Creates,
		Doc:    "Nothing is cleared, and files stay as they are. The agent's model writes the summary, and it is charged to you; if it cannot, the context is saved without one.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/sessions/{id}/contexts", ID: "saveContext", Tag: "sessions", Body: "NewContext", Status: 201}},
		CLI:    []operation.CLI{{Words: "context save", Args: "ID", Example: "  chorus context save 01k3 --description \"before the rewrite\""}},
		Slash: []operation.Slash{{Words: "context save", Options: "description id", Help: "Save the conversation with a summary; nothing is cleared", Example: "description:before the change",
			Show: "Saved as `{id}`: {messages} messages. Nothing was cleared.\n`/context restore {id:8}` brings it back.\n> {summary:1200}"}},
		MCP:  "context_save",
		Done: "{messages} messages are saved as {id}; nothing was cleared"}, SavedContexts.SaveContext)

	ListContexts = operation.New(operation.Info{Name: "context.list", Help: "List what was saved of a session and of others in the same place, newest first", Scope: operation.Read,
		Doc:    "The newest 50.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/sessions/{id}/contexts", ID: "listContexts", Tag: "sessions"}},
		CLI:    []operation.CLI{{Words: "context list", Args: "ID"}},
		Slash: []operation.Slash{{Words: "context history", Options: "id", Help: "List what was saved here",
			Show: "- `{id:8}` {savedAt:minute}, {messages} messages, by {byName:100}{automatic: (automatically)|}\n  **{description:100}**\n  {summary:160}"}},
		MCP:     "context_list",
		Columns: "CONTEXT=id:8 | SAVED=savedAt:minute | MESSAGES=messages | BY=byName | DESCRIPTION=description:40 | SUMMARY=summary:80", Label: "{id:8} {savedAt:minute}: {description:40} {summary:60}",
		Empty: "nothing is saved here; save something with chorus context save"}, SavedContexts.ListContexts)

	GetContext = operation.New(operation.Info{Name: "context.get", Help: "Show a saved context with its summary", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "GET /api/sessions/{id}/contexts/{context}", ID: "getContext", Tag: "sessions"}},
		CLI:    []operation.CLI{{Words: "context show", Args: "ID CONTEXT", Example: "  chorus context show 01k3 5f2c9d1e"}}}, SavedContexts.GetContext)

	RestoreContext = operation.New(operation.Info{Name: "context.restore", Help: "Replace what the agent sees of a session by a saved context", Scope: operation.Chat, Effect: operation.Changes,
		Doc:    "The journal keeps everything, and files stay as they are. If another session in the same place was saved, this one continues from it.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/sessions/{id}/contexts/{context}/restore", ID: "restoreContext", Tag: "sessions"}},
		CLI:    []operation.CLI{{Words: "context restore", Args: "ID CONTEXT", Example: "  chorus context restore 01k3 5f2c9d1e"}},
		Slash: []operation.Slash{{Words: "context restore", Options: "context id", Help: "Replace the current context by a saved one", Example: "context:5f2c",
			Show: "Restored `{id:8}`: the agent sees {restored} messages again, instead of what it saw before."}},
		MCP:  "context_restore",
		Done: "the agent sees {restored} messages again, instead of what it saw before"}, SavedContexts.RestoreContext)

	DeleteContext = operation.New(operation.Info{Name: "context.delete", Help: "Delete a saved context", Scope: operation.Chat, Effect: operation.Destroys,
		Doc:    "The conversation itself stays as it is. Whoever saved it can do this, and those who run this Chorus.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/sessions/{id}/contexts/{context}", ID: "deleteContext", Tag: "sessions"}},
		CLI:    []operation.CLI{{Words: "context delete", Args: "ID CONTEXT", Example: "  chorus context delete 01k3 5f2c9d1e --yes"}},
		Slash: []operation.Slash{{Words: "context delete", Options: "context id", Help: "Delete a saved context, after confirmation", Example: "context:5f2c", First: "context.get",
			Ask:  "Delete what was saved at {savedAt:minute} (`{id:8}`)? The conversation itself stays as it is. This cannot be undone.\n**{description:100}**\n> {summary:400}",
			Show: "The saved context `{id:8}` is deleted."}},
		Done: "the saved context {id} is deleted"}, SavedContexts.DeleteContext)
)

func savedContexts() []operation.Any {
	return []operation.Any{SaveContext, ListContexts, GetContext, RestoreContext, DeleteContext}
}
