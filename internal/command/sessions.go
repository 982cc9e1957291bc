package command

import (
	"encoding/json"
	"time"

	"chorus/internal/chat"
	"chorus/internal/feed"
)

// NewSession is what a session is made of; nothing is required.
type NewSession struct {
	WorkspacePath string `json:"workspacePath,omitempty"` // where it works; "": a folder of its own
	Agent         string `json:"agent,omitempty"`
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model,omitempty"`
	Permissions   string `json:"permissions,omitempty"`
	Sandbox       string `json:"sandbox,omitempty"`
	Mode          string `json:"mode,omitempty"`
	Title         string `json:"title,omitempty"`
	MaxIterations int    `json:"maxIterations,omitempty"`
	Key           string `json:"-"` // the same key makes the same session
	// History is what was said elsewhere before; it begins the session. It stays in the
	// house: it cannot be sent over the wire.
	History []Spoken `json:"-"`
}

// Spoken is a message of a conversation from elsewhere.
type Spoken struct {
	Agent    bool   // the agent said it, else a person
	Name     string // of the person; "": the caller's own
	Text     string
	Pictures [][]byte
}

// Session is a conversation as it stands.
type Session struct {
	ID            string       `json:"id"`     // what people call it
	Thread        string       `json:"thread"` // its whole name
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
	Status        string       `json:"status"` // idle, running, waiting
	Queue         int          `json:"queue"`  // prompts that wait
	Seq           int64        `json:"seq"`    // the last number of its journal
	LastOutcome   string       `json:"lastOutcome,omitempty"`
	Error         string       `json:"error,omitempty"` // of the last run
	ForkedFrom    string       `json:"forkedFrom,omitempty"`
	Usage         feed.Usage   `json:"usage"`
	Cost          feed.USD     `json:"cost"`
	Runs          []RunSummary `json:"runs,omitempty"` // the newest first; only where one session is asked for
}

// RunSummary is what one run came to.
type RunSummary struct {
	Run       string     `json:"run"`
	Seq       int64      `json:"seq"` // where it began
	Outcome   string     `json:"outcome,omitempty"`
	Steps     int        `json:"steps"`
	Model     string     `json:"model,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   time.Time  `json:"endedAt,omitzero"`
	Usage     feed.Usage `json:"usage"`
	Cost      feed.USD   `json:"cost"`
}

// SessionQuery narrows a list of sessions; zero fields do not.
type SessionQuery struct {
	Status string
	Agent  string
	Search string // in titles
	Cursor string
	Limit  int
}

// Span is a part of a session's journal.
type Span struct {
	After  int64 // only later numbers
	Before int64 // only earlier ones, the newest of them; 0: no limit
	Limit  int
}

// Words are what somebody says.
type Words struct {
	Message     string      `json:"message"`
	Attachments []string    `json:"attachments,omitempty"` // ids that Attach gave
	Mode        chat.Intake `json:"mode,omitempty"`        // how a steer comes in: inject or interrupt
	Key         string      `json:"-"`
}

// Said is what became of words.
type Said struct {
	Seq      int64  `json:"seq"`
	Position int    `json:"position,omitempty"` // how many are answered first
	AsPrompt bool   `json:"asPrompt,omitempty"` // a steer with nothing to steer
	Again    bool   `json:"again,omitempty"`    // they had come before
	Refused  string `json:"-"`
}

// Resume takes up a session of a file or of this house.
type Resume struct {
	WorkspacePath string `json:"workspacePath"`
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model,omitempty"`
	Mode          string `json:"mode,omitempty"` // full, last-N, summary
}

// RawEvent is an event as the journal has it.
type RawEvent struct {
	Seq      int64           `json:"seq"`
	At       time.Time       `json:"at"`
	Kind     string          `json:"kind"`
	Who      string          `json:"who,omitempty"`
	Run      string          `json:"run,omitempty"`
	Platform string          `json:"platform,omitempty"`
	Body     json.RawMessage `json:"body"`
}

// Request is one call of a model: what was sent, what of it was cached, what it cost.
type Request struct {
	Seq       int64           `json:"seq"`
	Run       string          `json:"run"`
	Step      int             `json:"step"`
	Attempt   int             `json:"attempt"`
	At        time.Time       `json:"at"`
	Model     string          `json:"model"`
	System    string          `json:"system,omitempty"`
	Tools     []string        `json:"tools,omitempty"`
	Fragments []Fragment      `json:"fragments,omitempty"`
	Digest    string          `json:"digest"`
	Verified  bool            `json:"verified"` // rebuilt from the journal, it has the recorded digest
	Usage     feed.Usage      `json:"usage"`
	Expected  int             `json:"expectedCached,omitempty"`
	Cost      feed.USD        `json:"cost"`
	Error     string          `json:"error,omitempty"`
	Extra     json.RawMessage `json:"extra,omitempty"`
}

// Fragment is one piece of a prompt.
type Fragment struct {
	Role   string `json:"role"`
	Text   string `json:"text"`
	Tokens int    `json:"tokens"` // estimated
	Cached bool   `json:"cached"` // it was sent before, byte for byte
}

// Format is what a session is written as.
type Format string

// The formats of an export.
const (
	Markdown  Format = "markdown" // for people to read
	JSONLines Format = "jsonl"    // the journal, an event a line
)

// Replayed is one request, rebuilt from the journal alone.
type Replayed struct {
	Seq     int64        `json:"seq"`
	Run     string       `json:"run"`
	Step    int          `json:"step"`
	Attempt int          `json:"attempt"`
	Purpose chat.Purpose `json:"purpose"`
	Digest  string       `json:"digest"`  // recorded when it was sent
	Rebuilt string       `json:"rebuilt"` // of what the journal makes of it now
	Same    bool         `json:"same"`
	Why     string       `json:"why,omitempty"` // why it could not be rebuilt
}

// Attachment is an uploaded file.
type Attachment struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
}

// SearchQuery is a full-text search over everything the caller may read.
type SearchQuery struct {
	Text   string
	Agent  string
	Cursor string
	Limit  int
}

// Hit is one place where something was said.
type Hit struct {
	Session string    `json:"session"`
	Title   string    `json:"title,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Who     string    `json:"who,omitempty"`
	Snippet string    `json:"snippet"` // the words found stand between \x01 and \x02
}
