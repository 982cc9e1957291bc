package transcript

import (
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// sent is what a provider's cache is expected to hold.
type sent struct {
	Tokens int    `json:"tokens"`
	Model  string `json:"model"`
	Head   string `json:"head"`
}

type entry struct {
	place int64
	seq   int64 // the event that brought it
	kind  entryKind
	msg   *model.Message
	id    string // of an imported message: the platform's ids of the messages in it
	at    time.Time
}

type entryKind string

const (
	said    entryKind = "said"
	results entryKind = "results"
	words   entryKind = "words"
	note    entryKind = "note"
	summary entryKind = "summary"
)

// item is something that will be placed: one message, or the lines of an import.
type item struct {
	seq  int64
	kind entryKind
	msgs []*model.Message
	ids  []string // of the lines of an import: the platform's ids; may be shorter than msgs
	at   time.Time
	what string // of a note: its subject
}

// id returns the platform's id of the nth message, or "".
func (it item) id(n int) string {
	if n < len(it.ids) {
		return it.ids[n]
	}
	return ""
}

// Waiting is a prompt that no run has taken.
type Waiting struct {
	Seq       int64
	From      chat.Participant
	Principal chat.Principal
	Blocks    chat.Blocks
	Intake    chat.Intake
	Steer     bool
	Terms     chat.Terms
	Together  bool // a run that begins with it takes all waiting prompts of this kind
	Silent    bool `json:",omitempty"` // the model does not see it
	// Stopped is who wants it refused before a run takes it, or "".
	Stopped string `json:",omitempty"`
}

// Sender is somebody on whose words a run works, with the terms they came on.
type Sender struct {
	Principal chat.Principal
	Terms     chat.Terms
	Seq       int64 // of the last of those words
}

// Run is the state of the current run.
type Run struct {
	ID        string
	Seq       int64 // the event that began it
	Model     string
	Head      string
	Settings  chat.Settings
	Principal chat.Principal
	Terms     chat.Terms
	Senders   []Sender // everybody whose words it has taken
	Started   time.Time

	Step    int // of the last request; 0 before the first
	Attempt int
	Open    bool         // a request was sent and has not ended: in flight, or lost in a crash
	Purpose chat.Purpose // of the open or last request
	Lost    int          // requests in a row that were lost
	Errors  int          // requests in a row that failed
	Failing time.Time    // time of the first of those failures
	Asked   time.Time    // when the last request was made
	Failure *chat.Failure
	RetryAt time.Time // no retry before this time

	Aborted   bool
	AbortedBy string
	AbortAll  bool
	// AbortOpen says that the abort named no run, so the approvals of this one are still open.
	AbortOpen bool `json:",omitempty"`

	Stop      chat.Stop // of the last answer
	Final     bool      // the last answer has no calls
	Steps     int       // answers so far
	Continued int       // times an answer was cut by the length limit
	Compacted int       // compactions since the last answer
	TooLong   int       // times the provider said the request was too long, since the last answer
	Fails     int       // failed results in a row
	Repeats   int       // identical calls in a row
	LastCall  string
	Usage     chat.Usage
	Spoke     bool // some answer had text
	// Called are the calls of all answers, kept if the run reports what was done.
	Called []chat.ToolUse `json:",omitempty"`
}

// Call is one tool call of the last answer.
type Call struct {
	Use      chat.ToolUse
	Shown    string // the id that the model sees; differs from the journal's if that was taken
	Began    bool
	Done     bool
	Approval string // its id, once asked
	Answered bool
	OK       bool
	Note     string
	By       string
	Deferred chat.ThreadID `json:",omitempty"` // the thread that answers it
	Settled  *chat.Settled `json:",omitempty"` // that thread's answer
	Result   chat.ToolRan
}

// Delegated reports whether another thread is working on the call.
func (c Call) Delegated() bool { return c.Deferred != "" && c.Settled == nil && !c.Done }

type turn struct {
	Seq int64
	At  time.Time
	Cut bool // stopped by the length limit: none of its calls may run
	// Unreadable says that a part of it could not be read, so none of its calls may run either.
	Unreadable bool
	Calls      []Call
	msg        *model.Message
}
