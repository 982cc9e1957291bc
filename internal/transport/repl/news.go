package repl

import (
	"time"

	"chorus/internal/chat"
)

// news is what happened, as a person is told it: one of the types below. The
// presenter makes them, the printer and the chat window show them.
type news interface{ news() }

// wrote: the next piece of the model's text.
type wrote struct{ text string }

// wroteAll: the message is complete. With calls it was said on the way to a
// result; with more it goes on in the next message.
type wroteAll struct {
	text  string
	calls bool
	more  bool
}

// wroteVoid: what was shown of this message does not count; it begins anew.
type wroteVoid struct{}

// began: a call with side effects is running.
type began struct{ call *call }

// finished: a call has its result.
type finished struct {
	call *call
	ran  chat.ToolRan
}

// asked and settled: somebody's yes is needed, or was given or refused.
type asked struct{ chat.ApprovalAsked }
type settled struct {
	chat.ApprovalAnswered
	name string
}

// heard: words from a person that the model now has, or that steer it.
type heard struct {
	from chat.Participant
	text string
	mode chat.Intake // "" for a prompt
}

// remark: something worth a line. A bad one is a failure.
type remark struct {
	text string
	bad  bool
}

// opened and ended: a run.
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

// call is a tool call that has no result yet.
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
