package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/command"
	"chorus/internal/usage"
)

func (c *cli) threadFork() *cobra.Command {
	var at int64
	cmd := c.jsonFlag(&cobra.Command{
		Use: "fork ID", Short: "Begin a new thread with what was said in another one", Args: exactly(1),
		Long: `Makes a new thread whose history is the old one's up to an event, and leaves the old
one as it is. Both work in the same directory. An answer whose calls were not done by then is
left out.`,
		Example: `  chorus thread fork 01k3                up to its end
  chorus thread fork 01k3 --at 12        up to event 12; chorus thread show has the numbers`,
	})
	cmd.Flags().Int64Var(&at, "at", 0, "the last event that the new thread has (default: the last there is)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("at") && at < 1 {
			return &usage.Error{Err: errors.New("--at must be the number of an event, 1 or more")}
		}
		if c.remote() {
			return c.farFork(cmd.Context(), args[0], at)
		}
		return c.with(cmd.Context(), func(a *app.App) error {
			row, err := a.Service.FindThread(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			made, err := a.Service.ForkThread(cmd.Context(), row, at)
			switch {
			case err != nil && command.KindOf(err) == command.Invalid:
				return &usage.Error{Err: err}
			case err != nil:
				return err
			case c.json:
				return c.printJSON(map[string]string{"sessionId": made.Thread(), "thread": string(made)})
			}
			fmt.Fprintln(c.out(), made.Thread())
			if made.Transport() == "cli" {
				c.warn("go on with: chorus chat --session-id " + made.Thread())
			}
			return nil
		})
	}
	return cmd
}
