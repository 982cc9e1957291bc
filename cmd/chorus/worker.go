package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/doctor/checks"
	"chorus/internal/transport/cli"
	"chorus/internal/usage"
)

func (c *program) workerCommand() *cobra.Command {
	o := app.WorkerOptions{Slots: 2, Drain: 10 * time.Minute}
	cmd := &cobra.Command{
		Use: "worker", Short: "Work on tasks beside the server; worker list shows who does", Args: exactly(0),
		Long: `Takes tasks of projects and works on them, as chorus serve does with its own workers
(configuration key workers), in a process of its own on the same home. Several may run; each has a
name and so many slots. What one that was killed had is taken over by another, where it stopped.

It stops on SIGTERM or Ctrl-C: it takes no further tasks and finishes those that it has, for at
most --drain; what is not done by then is handed on. A second signal ends it at once.`,
		Example: `  chorus worker --slots 4
  chorus worker --project web-app --project docs
  chorus worker --agent claude --name claude-1
  chorus worker list`,
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "its name among the workers (default the machine's and the process's number)")
	f.IntVar(&o.Slots, "slots", o.Slots, "tasks that it works on at the same time")
	f.StringArrayVarP(&o.Projects, "project", "p", nil, "takes only tasks of this project; may be given more than once")
	f.StringArrayVar(&o.Agents, "agent", nil, "takes only tasks of this agent; may be given more than once")
	f.DurationVar(&o.Drain, "drain", o.Drain, "how long it finishes what it has when it is told to stop")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Slots < 1 || o.Slots > 64 {
			return &usage.Error{Err: fmt.Errorf("--slots %d: 1 to 64 tasks at the same time", o.Slots)}
		}
		if text := checks.AsRoot(os.Geteuid()); text != "" {
			c.warn(text)
		}
		ctx, stop := twoSignals(cmd.Context(), c, "")
		defer stop()
		return c.with(ctx, func(a *app.App) error {
			if !c.console.ErrTTY {
				a.Logs.SpeakLog(c.console.Err, c.getenv("JOURNAL_STREAM") != "")
			}
			o.Ready = func(name string) { fmt.Fprintf(c.out(), "worker %s takes tasks\n", name) }
			o.Draining = func(tasks int) { fmt.Fprintf(c.out(), "stopping; waits for %d of its tasks\n", tasks) }
			return a.WorkOnTasks(ctx, o)
		})
	}
	return c.addOperations(cmd, func(*cli.Commands) {})
}
