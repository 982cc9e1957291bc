// Package worker defines the interface to programs that do a whole piece of work by themselves:
// agents with a model and tools of their own, such as the claude and codex command lines. Each has
// a subpackage for its protocol; workertest is the suite that all of them pass.
//
// It guarantees:
//   - When Work returns, no process of the program's tree is alive, however the program ended or ignored being told to.
//   - Nothing is assumed about a program's output: it may be cut off, too long, or not understandable.
//   - An error is an *Error with a kind, so that nobody has to interpret its text.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/work"
)

// Job is a piece of work.
type Job struct {
	Prompt  string
	Session string // the program's own name for its earlier session; "": a new one
	Dir     string
	Key     string // marks its processes, so that they can be found after a crash
}

// Call is a use of one of the program's own tools.
type Call struct {
	ID   string
	Name string
	Args json.RawMessage
	Like *Like
}

// Like is our equivalent tool, for which rules are written.
type Like struct {
	Name string
	Args json.RawMessage
}

// NewLike makes a Like from plain values.
func NewLike(name string, args map[string]any) *Like {
	data, err := json.Marshal(args)
	if err != nil {
		return nil
	}
	return &Like{Name: name, Args: data}
}

// Result is the result of a call.
type Result struct {
	Call    string
	Text    string
	Failed  bool
	Exit    int
	Changed []string // files
}

// Decision says whether a call may be made.
type Decision struct {
	Allow bool
	Why   string // why not
}

// Host is told what a program does. Its methods are called from the goroutine that
// called Work. An error ends the work and is returned by it.
type Host interface {
	Session(id string) error // from now on the work can be continued under this name
	Said(text string) error  // more of its text
	Thought(text string) error
	Began(Call) error
	Ended(Result) error
	Used(chat.Usage) error // tokens, in addition to those reported before
	Permit(Call) (Decision, error)
	Alive() // something arrived
}

// Outcome is the result of work that succeeded.
type Outcome struct {
	Summary string // its last words, if it marks them
	Cost    int64  // total cost in billionths of a dollar, as the program says; 0 if it does not
}

// Worker does work.
type Worker interface {
	// Work works on a job until it is done. An error is an *Error, the cause of ctx, or what the host returned.
	Work(ctx context.Context, job Job, host Host) (Outcome, error)
}

// Error says why a program did not do its work.
type Error struct {
	Kind    work.ErrorKind
	Message string
	Reset   time.Time // when to try again, if known
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an *Error.
func Errorf(kind work.ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// ErrNoSession means that the program does not know the session that it should continue.
var ErrNoSession = errors.New("the program does not know its session any more")
