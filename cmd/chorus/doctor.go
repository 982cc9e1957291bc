package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/doctor"
	"chorus/internal/doctor/checks"
	"chorus/internal/markdown"
)

func (c *program) doctorCommand() *cobra.Command {
	var e checks.Examination
	fix := false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "doctor", Short: "Check everything and say how to fix it", Args: exactly(0),
		Long: `Looks at the program, the home folder, the database, the configuration, the audit
log, the keys of the vendors, the programs that agents use, MCP servers, sandboxes,
budgets and approvals. Each line that is not well is followed by what to do.

It works also where nothing else does: with a broken configuration, a damaged or newer
database, a home that cannot be read or is not there yet. It changes nothing unless
--fix is given, never shows a key, and takes a few seconds at most.

Exit 1 if something is broken; warnings and notes are only shown.`,
		Example: `  chorus doctor
  chorus doctor --online       ask the vendors whether the keys are accepted
  chorus doctor --fix          also make a lost or damaged database usable again, and close the home off
  chorus doctor --json | jq '.sections[].findings[] | select(.mark == "broken")'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := checks.Options{Env: c.getenv, Home: c.home}
			e.Version = version
			wait := c.waiting()
			var fixed []doctor.Finding
			if fix {
				fixed = checks.Fix(cmd.Context(), o, e.Thorough)
			}
			e.Heard = wait.show
			report := checks.Examine(cmd.Context(), o, e)
			wait.end()
			report.Before("fixed", fixed)
			if !report.OK {
				c.exit = 1
			}
			if c.json {
				return c.printJSON(report)
			}
			_, err := io.WriteString(c.styled(), report.Text(doctor.Style{Look: c.look(), Width: c.width()}))
			return err
		},
	})
	cmd.Flags().BoolVar(&e.Online, "online", false, "ask the vendors whether the keys are accepted")
	cmd.Flags().BoolVar(&e.Thorough, "thorough", false, "read all of a big database, a long audit log, and every attachment")
	cmd.Flags().BoolVar(&fix, "fix", false, "do what can be done safely: make a lost, damaged or older database usable again, close the home off, remove unused bytes")
	cmd.Flags().BoolVar(&fix, "mend", false, "")
	_ = cmd.Flags().MarkHidden("mend") // as it was called before
	return cmd
}

// waiting shows on a terminal what is still looked at, and nothing anywhere else.
type waiting struct {
	out   io.Writer // nil: nobody sees it
	width int
	mu    sync.Mutex
	names []string
	stop  chan struct{}
	done  chan struct{}
}

// turns are the frames of something that goes on.
const turns = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

func (c *program) waiting() *waiting {
	w := &waiting{stop: make(chan struct{}), done: make(chan struct{}), width: 80}
	if !c.console.ErrTTY || !c.console.Look.Colored() || c.json {
		close(w.done)
		return w
	}
	w.out = c.console.Err
	if c.console.Size != nil {
		w.width, _ = c.console.Size()
	}
	go w.turn()
	return w
}

func (w *waiting) turn() {
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
			fmt.Fprintf(w.out, "\r\x1b[K%c %s", signs[frame%len(signs)], markdown.Truncate("looking at "+names, max(w.width-4, 10)))
		}
	}
}

// show is what is still waited for.
func (w *waiting) show(names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = names
}

// end takes it from the screen.
func (w *waiting) end() {
	close(w.stop)
	<-w.done
}
