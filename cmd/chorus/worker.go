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
		Use: "worker", Short: "Start a worker for tasks, or list the workers", Args: exactly(0),
		Long: `Takes tasks of projects and works on them, as chorus serve does with its own workers
(configuration key workers), in a separate process on the same home. You can run several; each has
a name and a number of slots. If one is killed, another takes over its tasks where they stopped.

Stop it with SIGTERM or Ctrl-C: it takes no more tasks and finishes the ones it has, for at most
--drain, then hands on what is not done. A second signal ends it at once.`,
		Example: `  chorus worker --slots 4
  chorus worker --project web-app --project docs
  chorus worker --agent claude --name claude-1
  chorus worker list`,
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "name of this worker (default: the machine's name and the process id)")
	f.IntVar(&o.Slots, "slots", o.Slots, "number of tasks to work on at the same time")
	f.StringArrayVarP(&o.Projects, "project", "p", nil, "take only tasks of this project; may be given more than once")
	f.StringArrayVar(&o.Agents, "agent", nil, "take only tasks of this agent; may be given more than once")
	f.DurationVar(&o.Drain, "drain", o.Drain, "how long to finish current tasks when told to stop")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Slots < 1 || o.Slots > 64 {
			return &usage.Error{Err: fmt.Errorf("--slots %d: must be between 1 and 64", o.Slots)}
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
			o.Draining = func(tasks int) { fmt.Fprintf(c.out(), "stopping; waiting for %d tasks\n", tasks) }
			return a.WorkOnTasks(ctx, o)
		})
	}
	return c.addOperations(cmd, func(*cli.Commands) {})
}
