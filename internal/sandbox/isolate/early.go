package isolate

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"chorus/internal/sandbox"
)

// StartEarly implements sandbox.EarlyStarter. A command is likely if the agent has run one in this
// directory before; conversations without commands pay nothing. Nothing is tried here: if it is not
// known whether bubblewrap works, the first command finds out.
func (e *isolatedExecutor) StartEarly(cmd sandbox.Command) {
	e.site.Proxy.early.start(func(ctx context.Context) {
		if _, err := os.Stat(filepath.Join(e.base(), commandHome)); err != nil {
			return
		}
		bubblewrap, err, known := e.app.Probe.Known(e.app)
		if !known || err != nil {
			return
		}
		// The sandbox gets the name that the last commits were made in, while git is asked in parallel. If
		// the name has changed, the command finds that the sandbox does not match and starts its own.
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

// earlyStart is preparation for a command that may come.
type earlyStart struct {
	mu     sync.Mutex
	end    context.CancelFunc
	done   chan struct{} // closed when nothing is running; nil if nothing ever was
	closed bool
}

// start runs do in the background, unless it is already running.
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

// wait waits for running preparation to end, because its command has come.
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

// close cancels running preparation, waits for it, and prevents further ones.
func (s *earlyStart) close() {
	s.mu.Lock()
	s.closed = true
	if s.end != nil {
		s.end()
	}
	s.mu.Unlock()
	s.wait(context.Background())
}
