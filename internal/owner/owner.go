// Package owner assigns things that only one process may have: a running
// thread, a bot's connection, the clock of the schedules.
//
// A name has one owner at a time among all that share it (the processes of one home, or the nodes
// of one database). Whoever finds it taken is told by whom. An owner that lost it is told to stop
// using it; if it does not react, the epoch of what it writes fences it off.
package owner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
)

// Name identifies a thing that can be owned.
type Name string

// The things that one process does for all others.
const (
	Hooks     Name = "hooks"     // runs the hooks
	Work      Name = "work"      // merges the work of tasks
	Schedules Name = "schedules" // delivers what schedules say
	Sweeps    Name = "sweeps"    // removes what nothing refers to any more
	Search    Name = "search"    // updates the search index before somebody searches
)

const threadPrefix, botPrefix, workerPrefix, projectPrefix, workPrefix = "thread:", "bot:", "worker:", "project:", "work:"

// Thread is the name of a thread. Its owner may take the thread.
func Thread(id chat.ThreadID) Name { return Name(threadPrefix + string(id)) }

// Bot is the name of a bot account. Its owner receives and sends for it.
func Bot(platform, account string) Name { return Name(botPrefix + platform + "-" + account) }

// Worker is the name of a process that works on tasks.
func Worker(name string) Name { return Name(workerPrefix + name) }

// Project is the name of a project's repositories. Its owner merges.
func Project(id string) Name { return Name(projectPrefix + id) }

// WorkOf is the name of what one process does for all others on one machine: merging and cleaning up.
func WorkOf(node string) Name { return Name(workPrefix + node) }

// IsThread reports whether the name is that of a thread.
func (n Name) IsThread() bool { return strings.HasPrefix(string(n), threadPrefix) }

// Owner takes things for this process.
type Owner interface {
	// Take takes a thing or fails at once: with a *HeldError if another
	// process, or another part of this process, has it.
	Take(ctx context.Context, name Name) (Held, error)
}

// Shared is an owner among others that look for the same work.
type Shared interface {
	Owner
	// Sweep says which of the things that have work this process should try to take: not those
	// that others have, and not immediately those that are assigned to others.
	Sweep(ctx context.Context) (try func(Name) bool, err error)
	// Changed returns a channel that is closed when something that others have
	// may have become free. Call it again after that.
	Changed() <-chan struct{}
}

// Held is a thing that this process has.
type Held interface {
	// Context ends when the thing is lost, with the reason as its cause. It does not end with Release.
	Context() context.Context
	// Release gives the thing back. Others can take it as soon as Release returns. It may be called twice.
	Release()
}

// ErrHeld means that somebody else has the thing.
var ErrHeld = errors.New("held by another process")

// ErrLost means that the thing belonged to this process and may now belong to somebody else.
var ErrLost = errors.New("it may belong to somebody else now")

// ErrDraining means that this process is handing over what it has and takes nothing new.
var ErrDraining = errors.New("this node is being drained and takes nothing new")

// HeldError is ErrHeld with the name of the owner.
type HeldError struct {
	Name Name
	By   string // "process 4711", "node berlin"; "" if it has just released the thing
}

func (e *HeldError) Error() string {
	if e.By == "" {
		return ErrHeld.Error()
	}
	return fmt.Sprintf("%s (%s)", ErrHeld, e.By)
}

// Is makes errors.Is(e, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Await takes a thing as soon as nobody else has it. It checks at the given interval.
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

// pause waits before the next check.
func pause(ctx context.Context, o Owner, every time.Duration) error {
	var changed <-chan struct{}
	if shared, ok := o.(Shared); ok {
		changed = shared.Changed()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-time.After(every):
	}
	return nil
}

// While does work as long as this process has a thing. It waits until nobody else has it,
// and again after it was lost, until ctx ends or the work returns by itself. The context
// of work ends when the thing is lost, and work must then return. failed is told why the
// thing could not be taken; While tries again.
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

// hold runs work with a held thing. lost means that somebody else may have it now.
func hold(ctx context.Context, held Held, work func(context.Context)) (lost bool) {
	defer held.Release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(held.Context(), func() { cancel(context.Cause(held.Context())) })()
	work(ctx)
	return held.Context().Err() != nil
}
