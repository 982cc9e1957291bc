// Package worker is the contract with programs that do a whole piece of work by themselves: agents with a model and tools of their own,
// such as the claude and codex command lines. Each has a package below that speaks its language; workertest is the suite that all pass.
//
// It promises:
//   - when Work returns, no process of the program's tree is alive, however the program ended or ignored being told to;
//   - what a program prints is taken as what it may be: cut off, too long, or nothing that anybody understands;
//   - an error is an *Error with a kind, so that nobody has to read its words.
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
	Session string // the program's own name for what it did before; "": it begins anew
	Dir     string
	Key     string // marks its processes, so that they are found after a crash
}

// Call is a use of one of the program's own tools.
type Call struct {
	ID   string
	Name string
	Args json.RawMessage
	Like *Like
}

// Like is the tool of ours that does the same: rules are written for those.
type Like struct {
	Name string
	Args json.RawMessage
}

// NewLike makes a Like of plain values.
func NewLike(name string, args map[string]any) *Like {
	data, err := json.Marshal(args)
	if err != nil {
		return nil
	}
	return &Like{Name: name, Args: data}
}

// Result is what came of a call.
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
	Why   string // not
}

// Host hears what a program does. All of it is called from the goroutine that called Work; an error ends the work and is returned by it.
type Host interface {
	Session(id string) error // from now on the work can be gone on with under this name
	Said(text string) error  // more of what it says
	Thought(text string) error
	Began(Call) error
	Ended(Result) error
	Used(chat.Usage) error // tokens, beyond those told before
	Permit(Call) (Decision, error)
	Alive() // something came
}

// Outcome is how work ended that ended well.
type Outcome struct {
	Summary string // what it said last, where it says so
	Cost    int64  // of all of it in billionths of a dollar, as the program says; 0: it does not say
}

// Worker does work.
type Worker interface {
	// Work works on a job until it is done. An error is an *Error, the cause of ctx, or what the host returned.
	Work(ctx context.Context, job Job, host Host) (Outcome, error)
}

// Error is why a program did not do its work.
type Error struct {
	Kind    work.ErrorKind
	Message string
	Reset   time.Time // when it can be tried again, where that is known
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an *Error.
func Errorf(kind work.ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// ErrNoSession says that the program knows nothing of the session that it was to go on with.
var ErrNoSession = errors.New("the program does not know its session any more")
