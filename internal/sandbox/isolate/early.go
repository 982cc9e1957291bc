package isolate

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"chorus/internal/sandbox"
)

// StartEarly implements sandbox.EarlyStarter. A command is likely where the agent has run one in this directory before;
// whoever only talks pays nothing. Nothing is tried here: where it is not known that bubblewrap works, the first command finds out.
func (e *isolatedExecutor) StartEarly(cmd sandbox.Command) {
	e.site.Proxy.early.start(func(ctx context.Context) {
		if _, err := os.Stat(filepath.Join(e.base(), commandHome)); err != nil {
			return
		}
		bubblewrap, err, known := e.app.Probe.Known(e.app)
		if !known || err != nil {
			return
		}
		// The sandbox has the name that commits were made in last, and git is asked beside that. Where it is another one by now,
		// the command finds a sandbox that does not fit, and puts up its own.
		var asked sync.WaitGroup
		defer asked.Wait()
		asked.Go(func() { _, _ = e.environment(ctx, bubblewrap) })
		env, err := e.lastEnvironment(bubblewrap)
		if err != nil {
			return
		}
		if inner, err := e.inner(ctx, env, cmd); err == nil {
			bubblewrap.StartEarly(ctx, inner)
		}
	})
}

// earlyStart is what is begun for a command that may come.
type earlyStart struct {
	mu     sync.Mutex
	end    context.CancelFunc
	done   chan struct{} // closed when nothing is under way; nil: nothing ever was
	closed bool
}

// start does something beside its caller, unless the same is under way.
func (s *earlyStart) start(do func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.done != nil && !isClosed(s.done) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.end, s.done = cancel, done
	go func() {
		defer close(done)
		defer cancel()
		do(ctx)
	}()
}

func isClosed(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// wait waits for what is under way: the command that it is for has come.
func (s *earlyStart) wait(ctx context.Context) {
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// close ends what is under way, waits for that, and begins nothing any more.
func (s *earlyStart) close() {
	s.mu.Lock()
	s.closed = true
	if s.end != nil {
		s.end()
	}
	s.mu.Unlock()
	s.wait(context.Background())
}
