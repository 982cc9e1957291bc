package operations

import (
	"context"
	"net/url"
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
)

// Sessions implements operations on conversations.
type Sessions interface {
	CreateSession(context.Context, operation.Caller, NewSession) (CreatedSession, error)
	// PreviewSession returns what CreateSession would create, or its error, and creates nothing. The session has no id.
	PreviewSession(context.Context, operation.Caller, NewSession) (Session, error)
	// ListSessions lists the last active first.
	ListSessions(context.Context, operation.Caller, SessionQuery) (operation.List[Session], error)
	GetSession(context.Context, operation.Caller, SessionRef) (Session, error)
	// Say sends a prompt. With a Key it is accepted once, however often it is sent.
	Say(context.Context, operation.Caller, Message) (Said, error)
	// Steer sends a message to the current run; without one it is a prompt.
	Steer(context.Context, operation.Caller, SteerMessage) (Said, error)
	Abort(context.Context, operation.Caller, AbortRequest) (Aborted, error)
	ResumeSession(context.Context, operation.Caller, ResumeRequest) (CreatedSession, error)
	// ChangeSession changes settings that apply from the next message on.
	ChangeSession(context.Context, operation.Caller, SessionChange) (Session, error)
	// ClearSession clears what the agent sees; the journal keeps it.
	ClearSession(context.Context, operation.Caller, SessionRef) (ClearedSession, error)
	Fork(context.Context, operation.Caller, ForkRequest) (CreatedSession, error)
	// Attach stores a file that a later message names.
	Attach(context.Context, operation.Caller, NewAttachment) (Attachment, error)
}

// NewSession describes a new session; nothing is required.
type NewSession struct {
	WorkspacePath string `json:"workspacePath,omitempty" maxLen:"4096" doc:"the folder it works in; left out: its own"`
	Agent         string `json:"agent,omitempty" maxLen:"64" noun:"agent" doc:"who answers"`
	Provider      string `json:"provider,omitempty" maxLen:"64" noun:"provider"`
	Model         string `json:"model,omitempty" maxLen:"200" noun:"model" cli:"model,m" doc:"provider/model, or a model's name alone"`
	Permissions   string `json:"permissions,omitempty" maxLen:"64" noun:"profile" doc:"the profile that says what may be done without asking"`
	Sandbox       string `json:"sandbox,omitempty" maxLen:"32" doc:"host, bwrap or docker"`
	Mode          string `json:"mode,omitempty" maxLen:"32" doc:"plan, review, implement or verify"`
	Title         string `json:"title,omitempty" maxLen:"200" doc:"its title in lists"`
	Message       string `json:"message,omitempty" maxLen:"1000000" cli:"-" slash:"-" doc:"its first message; left out: none"`
	MaxIterations int    `json:"maxIterations,omitempty" min:"0" max:"10000" doc:"maximum number of steps of a run; 0: the agent's setting"`
	Key           string `json:"-" key:"true"` // the same key creates the same session
	// History is an earlier conversation from elsewhere, which starts the session. It cannot be sent over HTTP.
	History []Spoken `json:"-"`
	// Attended means that somebody waits for each answer, so failures should be reported early.
	Attended bool `json:"-"`
	// Sample puts the sample project into its folder, which must be its own.
	Sample bool `json:"-"`
}

// Spoken is a message of a conversation from elsewhere.
type Spoken struct {
	Agent  bool   // from the agent, else from a person
	Name   string // of the person; "": the caller's own
	Text   string
	Images [][]byte
}

// CreatedSession is a session that was created or resumed.
type CreatedSession struct {
	SessionID string  `json:"sessionId"`
	Session   Session `json:"session"`
	Seq       int64   `json:"seq,omitempty"` // of its first message, if it was created with one
}

// Location is where the session is in the HTTP API.
func (c CreatedSession) Location() string { return "/api/sessions/" + url.PathEscape(c.SessionID) }

// Session is a conversation in its current state.
type Session struct {
	ID            string       `json:"id"`     // title for people
	Thread        string       `json:"thread"` // its full name
	Title         string       `json:"title,omitempty"`
	WorkspacePath string       `json:"workspacePath,omitempty"`
	Agent         string       `json:"agent"`
	Provider      string       `json:"provider,omitempty"`
	Model         string       `json:"model,omitempty"`
	Permissions   string       `json:"permissions,omitempty"`
	Sandbox       string       `json:"sandbox,omitempty"`
	Mode          string       `json:"mode,omitempty"`
	Owner         string       `json:"owner,omitempty"`
	CreatedAt     time.Time    `json:"createdAt"`
	MovedAt       time.Time    `json:"movedAt"`
	Status        string       `json:"status"`             // idle, queued, running, interrupted, waiting
	Position      int          `json:"position,omitempty"` // of a queued one: its place in the queue, from 1
	Queue         int          `json:"queue"`              // waiting prompts
	Seq           int64        `json:"seq"`                // the last number in its journal
	LastOutcome   string       `json:"lastOutcome,omitempty"`
	Error         string       `json:"error,omitempty"` // of the last run
	ForkedFrom    string       `json:"forkedFrom,omitempty"`
	Parent        string       `json:"parent,omitempty"`  // the session whose agent started it
	Listing       string       `json:"listing,omitempty"` // pinned, archived or deleted
	Until         time.Time    `json:"until,omitzero"`    // of a deleted one: until when it can be restored
	Usage         feed.Usage   `json:"usage"`
	Cost          feed.USD     `json:"cost"`
	Window        int          `json:"window,omitempty"` // the context size of its model; only if one session is requested, created or changed
	RunsIn        string       `json:"runsIn,omitempty"` // what the sandbox comes to on the server: bwrap, docker, host or "no sandbox"; as window
	Runs          []RunSummary `json:"runs,omitempty"`   // newest first; only if one session is requested
}

// RunSummary is the result of one run.
type RunSummary struct {
	Run       string     `json:"run"`
	Seq       int64      `json:"seq"` // its first event
	Outcome   string     `json:"outcome,omitempty"`
	Steps     int        `json:"steps"`
	Model     string     `json:"model,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   time.Time  `json:"endedAt,omitzero"`
	Usage     feed.Usage `json:"usage"`
	Cost      feed.USD   `json:"cost"`
}

// SessionQuery filters a list of sessions; zero fields do not.
type SessionQuery struct {
	Status  string `json:"status,omitempty" enum:"idle,queued,running,interrupted,waiting" doc:"queued: it waits until fewer others run; interrupted: the program running it ended, and it continues when a terminal opens it"`
	Agent   string `json:"agent,omitempty" maxLen:"64" noun:"agent" doc:"only this agent's"`
	Search  string `json:"search,omitempty" maxLen:"200" doc:"words of the title"`
	Listing string `json:"listing,omitempty" enum:"pinned,archived,deleted,all" doc:"only the pinned, the archived or the deleted ones, or all but the deleted; left out: all but the archived and the deleted"`
	Kind    string `json:"kind,omitempty" enum:"talk,task" doc:"task: only those of tasks of projects; talk: all others; left out: all"`
	Parent  string `json:"parent,omitempty" maxLen:"1024" noun:"session" doc:"those that this session's agent delegated to other agents; left out: those that people started"`
	Cursor  string `json:"cursor,omitempty" maxLen:"1024" cli:"-" slash:"-" doc:"next of the previous page"`
	Limit   int    `json:"limit,omitempty" min:"1" max:"200" default:"50" doc:"maximum number of results"`
}

// SessionRef names a session.
type SessionRef struct {
	ID string `json:"id" maxLen:"1024" noun:"session" context:"session" slash:"thread" slashDoc:"Which conversation; left out: the one here" doc:"the session's id"`
}

// ClearedSession says what was cleared.
type ClearedSession struct {
	Messages int `json:"messages" doc:"how many messages the agent no longer sees"`
}

// Message is a message to an agent.
type Message struct {
	ID          string   `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	Message     string   `json:"message,omitempty" maxLen:"1000000" doc:"the message; may be left out if something is attached"`
	Attachments []string `json:"attachments,omitempty" maxItems:"100" slash:"-" doc:"ids of uploads"`
	Key         string   `json:"-" key:"true"`
}

// SteerMessage is a message to the current run.
type SteerMessage struct {
	ID          string      `json:"id" maxLen:"1024" noun:"session" context:"running" slash:"thread" slashDoc:"Which conversation; left out: the one here" doc:"the session's id"`
	Message     string      `json:"message,omitempty" maxLen:"1000000" cli:"words" slashDoc:"The message" doc:"the message; may be left out if something is attached"`
	Attachments []string    `json:"attachments,omitempty" maxItems:"100" cli:"-" slash:"-" doc:"ids of uploads"`
	Mode        chat.Intake `json:"mode,omitempty" enum:"inject,interrupt" cli:"-" doc:"inject: after the running tools; interrupt: instead of the waiting ones; left out: inject"`
	Key         string      `json:"-" key:"true"`
}

// Said is what happened to a message.
type Said struct {
	Seq      int64  `json:"seq"`
	Position int    `json:"position,omitempty"` // how many are answered first
	AsPrompt bool   `json:"asPrompt,omitempty"` // a steer without a run
	Title    string `json:"title,omitempty"`    // of the session that was steered
	Again    bool   `json:"again,omitempty"`    // it was sent before
	Refused  string `json:"-"`
}

// AbortRequest says what to stop.
type AbortRequest struct {
	ID  string `json:"id" maxLen:"1024" noun:"session" context:"session" slash:"thread" slashDoc:"Which conversation" doc:"the session's id"`
	All bool   `json:"all,omitempty" doc:"also refuse waiting messages"`
}

// Aborted says what an abort found.
type Aborted struct {
	Aborted bool   `json:"aborted" doc:"false: nothing was running"`
	Title   string `json:"title,omitempty" doc:"of the session"`
}

// ResumeRequest continues a session of a log file or of this home.
type ResumeRequest struct {
	ID            string `json:"id" maxLen:"1024" doc:"the session's id"`
	WorkspacePath string `json:"workspacePath,omitempty" maxLen:"4096" doc:"the folder with the session's log; not needed for a session that Chorus knows"`
	Provider      string `json:"provider,omitempty" maxLen:"64" noun:"provider"`
	Model         string `json:"model,omitempty" maxLen:"200" noun:"model"`
	Mode          string `json:"mode,omitempty" maxLen:"32" pattern:"^(full|summary|last-[0-9]{1,9})?$" doc:"how much of it: full, last-N or summary"`
}

// SessionChange is a change of a session from its next message on; fields left out do not change.
type SessionChange struct {
	ID          string `json:"id" maxLen:"1024" noun:"session" context:"session" slash:"thread" slashDoc:"Which conversation; left out: the one here" doc:"the session's id"`
	Model       string `json:"model,omitempty" maxLen:"200" noun:"model" cli:"model,m" doc:"provider/model, or a model's name alone"`
	Mode        string `json:"mode,omitempty" maxLen:"32" doc:"plan, review, implement or verify; off: none"`
	Permissions string `json:"permissions,omitempty" maxLen:"64" noun:"profile" doc:"the profile that says what may be done without asking"`
	Title       string `json:"title,omitempty" maxLen:"200" doc:"its title in lists"`
	Listing     string `json:"listing,omitempty" enum:"normal,pinned,archived" doc:"pinned: at the top of lists; archived: out of lists until a new message"`
}

// ForkRequest says where to fork a session.
type ForkRequest struct {
	ID    string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	AtSeq int64  `json:"atSeq,omitempty" min:"1" max:"9007199254740991" cli:"at" doc:"the last number that the fork shares; left out: the last there is"`
	// Message is created together with the fork: the fork never exists without it.
	Message string `json:"message,omitempty" maxLen:"1000000" cli:"-" slash:"-" doc:"the first message of the fork; left out: none"`
	Key     string `json:"-" key:"true"` // the same key makes the same fork
}

// NewAttachment is a file for a later message.
type NewAttachment struct {
	ID   string         `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	Name string         `json:"name,omitempty" maxLen:"255" doc:"the file's name, if no form gives one"`
	File operation.File `json:"-"`
}

// Attachment is an uploaded file.
type Attachment struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
}

// maxUpload is a little more than the largest accepted file, for the form around it.
const maxUpload = 26 << 20

// The operations on sessions.
var (
	CreateSession = operation.New(operation.Info{Name: "session.create", Help: "Create a session", Scope: operation.Chat, Effect: operation.Creates,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/sessions", ID: "createSession", Body: "NewSession", Status: 201}},
		MCP:    "session_create",
	}, Sessions.CreateSession)

	PreviewSession = operation.New(operation.Info{Name: "session.preview", Help: "Show what a new session would be, without creating it",
		Doc: "The answer has no id. Terminals show it until something is said: only then do they create the session.", Scope: operation.Chat, Errors: []operation.Kind{operation.NotFound},
		HTTP: []operation.HTTP{{Route: "POST /api/sessions/preview", ID: "previewSession", Body: "NewSession"}}}, Sessions.PreviewSession)

	ListSessions = operation.New(operation.Info{Name: "session.list", Help: "List sessions, last active first", Scope: operation.Read, Errors: []operation.Kind{operation.NotFound},
		HTTP:    []operation.HTTP{{Route: "GET /api/sessions", ID: "listSessions"}},
		CLI:     []operation.CLI{{Words: "thread list", Help: "List threads, last active first"}},
		Tool:    "session_list",
		Columns: "SESSION=id | AGENT=agent | STATUS=status | LAST ACTIVE=movedAt:minute | TITLE=title:60", Label: "{title:60} ({agent}, {status}) {id}",
		Empty: "there are no threads; start one: chorus chat"}, Sessions.ListSessions)

	GetSession = operation.New(operation.Info{Name: "session.get", Help: "Show a session with its runs", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/sessions/{id}", ID: "getSession"}}, Tool: "session_get"}, Sessions.GetSession)

	Say = operation.New(operation.Info{Name: "session.say", Help: "Say something", Doc: "The answer is sent over the stream.", Scope: operation.Chat,
		Effect: operation.Creates, Errors: []operation.Kind{operation.Conflict},
		HTTP: []operation.HTTP{{Route: "POST /api/sessions/{id}/chat", ID: "chat", Body: "Words", NeedsBody: true, Status: 202, MaxBody: 8 << 20}},
		MCP:  "session_say",
	}, Sessions.Say)

	Steer = operation.New(operation.Info{Name: "session.steer", Help: "Send a message to the agent while it works",
		Doc: "If nothing runs, it is a message like any other.", Scope: operation.Chat, Effect: operation.Creates, Errors: []operation.Kind{operation.Conflict},
		HTTP: []operation.HTTP{{Route: "POST /api/sessions/{id}/steer", ID: "steer", Body: "Steering", NeedsBody: true, Status: 202, MaxBody: 8 << 20}},
		CLI:  []operation.CLI{{Words: "thread steer", Args: "ID WORDS…"}},
		Slash: []operation.Slash{{Words: "steer", Options: "message id", Require: "message", Set: map[string]any{"mode": chat.Interrupt}, Help: "Send a message to the active run", Example: "message:Leave the tests alone",
			None: "Nothing is running here; write it in the channel instead.", Show: "Sent to: {title:60}"}},
		MCP: "session_steer"}, Sessions.Steer)

	Abort = operation.New(operation.Info{Name: "session.abort", Help: "Stop the current run", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/sessions/{id}/abort", ID: "abort", Body: "Stop", Status: 202}},
		CLI:    []operation.CLI{{Words: "thread abort", Args: "ID"}},
		Slash: []operation.Slash{{Words: "thread kill", Options: "id", Require: "id", Set: map[string]any{"all": true}, Help: "Stop a conversation and drop its waiting prompts", Example: "thread:1402",
			Show: "{aborted:Stopped|It had already ended}: {title:60}"}},
		Tool: "session_abort"}, Sessions.Abort)

	ResumeSession = operation.New(operation.Info{Name: "session.resume", Help: "Continue a session from its log", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/sessions/{id}/resume", ID: "resume", Body: "TakeUp"}}}, Sessions.ResumeSession)

	ChangeSession = operation.New(operation.Info{Name: "session.change", Help: "Change the model, the mode, the permissions or the title of a session, pin it or archive it",
		Doc: "Model, mode and permissions apply from the next message on; the current run does not change.", Scope: operation.Chat, Effect: operation.Changes,
		HTTP: []operation.HTTP{{Route: "PATCH /api/sessions/{id}", ID: "changeSession", Body: "SessionChange", NeedsBody: true}},
		CLI:  []operation.CLI{{Words: "thread change", Args: "ID", Example: "  chorus thread change 01k3 --mode review\n  chorus thread change 01k3 -m anthropic/claude-sonnet-4-5\n  chorus thread change 01k3 --title \"Release 2.1\" --listing pinned"}},
		Slash: []operation.Slash{
			{Words: "thread rename", Options: "title id", Require: "title", Help: "Rename a conversation", Example: "title:Release 2.1", Show: "It is now called **{title:200}**."},
			{Words: "thread pin", Options: "id", Set: map[string]any{"listing": "pinned"}, Help: "Pin a conversation to the top of lists", Show: "{title:200} (`{id}`) is pinned; `/thread unpin` unpins it."},
			{Words: "thread unpin", Options: "id", Set: map[string]any{"listing": "normal"}, Help: "Unpin a conversation", Show: "{title:200} (`{id}`) is no longer pinned."},
			{Words: "thread archive", Options: "id", Set: map[string]any{"listing": "archived"}, Help: "Archive a conversation: it leaves the lists until a new message", Show: "{title:200} (`{id}`) is archived until a new message; `/thread unarchive` brings it back now."},
			{Words: "thread unarchive", Options: "id", Set: map[string]any{"listing": "normal"}, Help: "Unarchive a conversation", Show: "{title:200} (`{id}`) is back in lists."}},
		Done: "{id} answers as {provider}/{model} with the permissions {permissions} from the next message on"}, Sessions.ChangeSession)

	ClearSession = operation.New(operation.Info{Name: "session.clear", Help: "Clear the context: the agent no longer sees earlier messages",
		Doc: "The session continues, and its journal keeps everything.", Scope: operation.Chat, Effect: operation.Changes, Errors: []operation.Kind{operation.Conflict},
		HTTP: []operation.HTTP{{Route: "POST /api/sessions/{id}/clear", ID: "clear"}},
		CLI:  []operation.CLI{{Words: "thread clear", Args: "ID"}},
		MCP:  "session_clear",
		Done: "the agent no longer sees {messages} messages"}, Sessions.ClearSession)

	Fork = operation.New(operation.Info{Name: "session.fork", Help: "Create a session that starts with this one's history", Scope: operation.Chat,
		Effect: operation.Creates, Errors: []operation.Kind{operation.Conflict},
		HTTP: []operation.HTTP{{Route: "POST /api/sessions/{id}/fork", ID: "fork", Body: "ForkAt", Status: 201}},
		MCP:  "session_fork",
		CLI: []operation.CLI{{Words: "thread fork", Args: "ID", Help: "Start a new thread with the history of another one",
			Doc: "Creates a new thread with the history of another one up to an event; the other thread does\n" +
				"not change. Both work in the same directory. An answer whose calls were not done by then is\n" +
				"left out.",
			Example: "  chorus thread fork 01k3                up to its end\n" +
				"  chorus thread fork 01k3 --at 12        up to event 12; chorus thread show --events has the numbers"}}}, Sessions.Fork)

	Attach = operation.NewUpload(operation.Info{Name: "session.attach", Help: "Upload a file that a later message names",
		Doc: "Send the raw bytes, or a form with one file.", Scope: operation.Chat, Effect: operation.Creates, Errors: []operation.Kind{operation.Conflict},
		HTTP: []operation.HTTP{{Route: "POST /api/sessions/{id}/attachments", ID: "attach", Status: 201, MaxBody: maxUpload}},
		CLI:  []operation.CLI{{Words: "thread attach", Args: "ID FILE"}}, Done: "{name} is stored as {id}"}, Sessions.Attach)
)

func sessions() []operation.Any {
	return slices.Concat([]operation.Any{CreateSession, PreviewSession, ListSessions, GetSession, ChangeSession, Say, Steer, Abort, ResumeSession, ClearSession, Fork, Attach}, commands(), sessionWork(), savedContexts(), shares(), sessionDeleting())
}
