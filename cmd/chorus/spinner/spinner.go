// Package spinner shows on a terminal what a command is waiting for.
package spinner

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"chorus/internal/markdown"
	"chorus/internal/transport/repl"
)

// Spinner shows on a terminal what is still being checked. It prints nothing elsewhere.
type Spinner struct {
	out   io.Writer // nil: not shown
	width int
	mu    sync.Mutex
	names []string
	stop  chan struct{}
	done  chan struct{}
}

// turns are the animation frames.
const turns = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// New starts a spinner that is shown until End. A silent one shows nothing.
func New(c repl.Console, silent bool) *Spinner {
	w := &Spinner{stop: make(chan struct{}), done: make(chan struct{}), width: 80}
	if !c.ErrTTY || !c.Look.Colored() || silent {
		close(w.done)
		return w
	}
	w.out = c.Err
	if c.Size != nil {
		w.width, _ = c.Size()
	}
	go w.turn()
	return w
}

func (w *Spinner) turn() {
	defer close(w.done)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	signs := []rune(turns)
	for frame := 0; ; frame++ {
		select {
		case <-w.stop:
			fmt.Fprint(w.out, "\r\x1b[K")
			return
		case <-tick.C:
			w.mu.Lock()
			names := strings.Join(w.names, ", ")
			w.mu.Unlock()
			fmt.Fprintf(w.out, "\r\x1b[K%c %s", signs[frame%len(signs)], markdown.Truncate("checking "+names, max(w.width-4, 10)))
		}
	}
}

// Show sets the names that are still waited for.
func (w *Spinner) Show(names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = names
}

// End removes the spinner from the screen.
func (w *Spinner) End() {
	close(w.stop)
	<-w.done
}
