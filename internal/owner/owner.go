// Package owner says who has what only one may have: a thread that runs, a bot's connection, the clock of the schedules.
//
// It promises that a name has one owner at a time among all that share it (the processes of one home, or the nodes of one
// database), that whoever finds it taken is told by whom, and that an owner who lost it is told to end what it does with it. An
// owner that is deaf to that is fenced by the epoch of what it writes.
package owner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
)

// Name is what a thing is called that can be owned.
type Name string

// The things that one process does for all.
const (
	Hooks     Name = "hooks"     // runs the hooks
	Work      Name = "work"      // merges what the tasks did
	Schedules Name = "schedules" // says what schedules say
	Sweeps    Name = "sweeps"    // removes what nobody refers to any more
	Search    Name = "search"    // brings the index of words up to date, before somebody searches
)

const threadPrefix, botPrefix, workerPrefix, projectPrefix, workPrefix = "thread:", "bot:", "worker:", "project:", "work:"

// Thread is the name of a thread: whoever has it may take the thread.
func Thread(id chat.ThreadID) Name { return Name(threadPrefix + string(id)) }

// Bot is the name of a bot account: whoever has it hears and speaks for it.
func Bot(platform, account string) Name { return Name(botPrefix + platform + "-" + account) }

// Worker is the name of a process that works on tasks.
func Worker(name string) Name { return Name(workerPrefix + name) }

// Project is the name of a project's repositories: whoever has it merges.
func Project(id string) Name { return Name(projectPrefix + id) }

// WorkOf is the name of what one process does for all on one machine: merging and cleaning up.
func WorkOf(node string) Name { return Name(workPrefix + node) }

// IsThread reports whether it is the name of a thread.
func (n Name) IsThread() bool { return strings.HasPrefix(string(n), threadPrefix) }

// Owner gives things to this process.
type Owner interface {
	// Take takes a thing or fails at once: with a *HeldError when somebody else has it, or somebody else in this process.
	Take(ctx context.Context, name Name) (Held, error)
}

// Shared is an owner among others that all look for the same work.
type Shared interface {
	Owner
	// Sweep says which of the things that have work this process should try for: not what others have, and not at once what is
	// more for others to take.
	Sweep(ctx context.Context) (try func(Name) bool, err error)
	// Changed is closed when something that others have may have become free; ask for it again then.
	Changed() <-chan struct{}
}

// Held is a thing that this process has.
type Held interface {
	// Context ends when the thing was lost, with the reason as its cause. It does not end with Release.
	Context() context.Context
	// Release gives the thing back; others can take it as soon as it returns. It may be called twice.
	Release()
}

// ErrHeld: somebody else has it.
var ErrHeld = errors.New("held by another process")

// ErrLost: it was this process's and may be somebody else's now.
var ErrLost = errors.New("it may belong to somebody else now")

// ErrDraining: this process hands over what it has and takes nothing.
var ErrDraining = errors.New("this node is being drained and takes nothing new")

// HeldError is ErrHeld with who has it.
type HeldError struct {
	Name Name
	By   string // "process 4711", "node berlin"; empty: it has just let go
}

// Error says so.
func (e *HeldError) Error() string {
	if e.By == "" {
		return ErrHeld.Error()
	}
	return fmt.Sprintf("%s (%s)", ErrHeld, e.By)
}

// Is makes it an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Await takes a thing as soon as nobody else has it, looking every so often.
func Await(ctx context.Context, o Owner, name Name, every time.Duration) (Held, error) {
	for {
		held, err := o.Take(ctx, name)
		if !errors.Is(err, ErrHeld) && !errors.Is(err, ErrDraining) {
			return held, err
		}
		if err := pause(ctx, o, every); err != nil {
			return nil, err
		}
	}
}

// pause waits before the next look.
func pause(ctx context.Context, o Owner, every time.Duration) error {
	var changed <-chan struct{}
	if shared, ok := o.(Shared); ok {
		changed = shared.Changed()
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-timer.C:
	}
	return nil
}

// While does work as long as this process has a thing: it waits until nobody else has it, and again after it was lost, until ctx
// ends or the work does by itself. The work's context ends when the thing is lost, and the work must end then. failed hears what kept
// it from being taken; it is tried again.
func While(ctx context.Context, o Owner, name Name, every time.Duration, failed func(error), work func(context.Context)) {
	for ctx.Err() == nil {
		held, err := Await(ctx, o, name, every)
		if err != nil {
			if ctx.Err() == nil {
				failed(err)
				_ = pause(ctx, o, every)
			}
			continue
		}
		if !hold(ctx, held, work) {
			return
		}
	}
}

// hold works with a thing; lost: somebody else may have it now.
func hold(ctx context.Context, held Held, work func(context.Context)) (lost bool) {
	defer held.Release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(held.Context(), func() { cancel(context.Cause(held.Context())) })()
	work(ctx)
	return held.Context().Err() != nil
}
