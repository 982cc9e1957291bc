package repl

import (
	"time"

	"chorus/internal/chat"
)

// news is something that a person is told: one of the types below. The
// presenter creates them; the printer and the chat window show them.
type news interface{ news() }

// wrote is the next piece of the model's text.
type wrote struct{ text string }

// wroteAll completes a message. calls means that it was said on the way to a
// result; more means that it continues in the next message.
type wroteAll struct {
	text  string
	calls bool
	more  bool
}

// wroteVoid discards what was shown of this message; it starts over.
type wroteVoid struct{}

// began means that a call with side effects is running.
type began struct{ call *call }

// finished means that a call has its result.
type finished struct {
	call *call
	ran  chat.ToolRan
}

// asked and settled mean that an approval is needed, or was answered.
type asked struct{ chat.ApprovalAsked }
type settled struct {
	chat.ApprovalAnswered
	name string
}

// heard is a person's message that the model now has, or that steers it.
type heard struct {
	from chat.Participant
	text string
	mode chat.Intake // "" for a prompt
}

// remark is other news in one line. A bad one is a failure.
type remark struct {
	text string
	bad  bool
}

// opened and ended mark a run.
type opened struct{ chat.RunStarted }
type ended struct{ chat.RunEnded }

func (wrote) news()     {}
func (wroteAll) news()  {}
func (wroteVoid) news() {}
func (began) news()     {}
func (finished) news()  {}
func (asked) news()     {}
func (settled) news()   {}
func (heard) news()     {}
func (remark) news()    {}
func (opened) news()    {}
func (ended) news()     {}

// call is a tool call without a result yet.
type call struct {
	id       string
	name     string
	label    string
	args     []byte
	progress []string // the last lines of its output so far
	since    time.Time
	begun    bool
	waits    bool // for an approval
}
