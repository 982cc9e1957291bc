package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/runsetup"
	"chorus/internal/transport/repl"
)

// toolJSON is a tool in JSON, resultJSON the result of one.
type (
	toolJSON struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	resultJSON struct {
		Text   string `json:"text"`
		Failed bool   `json:"failed"`
	}
)

func (c *program) toolCommand() *cobra.Command {
	var o runsetup.SessionOptions
	cmd := c.jsonFlag(&cobra.Command{
		Use: "tool NAME [JSON]", Short: "Run one built-in tool as an agent would", Args: between(0, 2),
		Long: `Runs one tool through the same gate and executor that agents use, and prints its result.
Without a name it lists the tools. Exits with 1 if the tool failed, 4 if it was denied.`,
		Example: `  chorus tool read '{"path":"go.mod","limit":3}'
  chorus tool bash '{"command":"go version"}' --yes`,
	})
	cmd.Flags().StringVarP(&o.Dir, "repo", "r", "", "directory to work in (default: here)")
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "approve everything that is asked for; what a rule denies stays denied")
	cmd.Flags().StringVar(&o.Profile, "permissions", "", "permission profile (default standard)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.with(cmd.Context(), func(a *app.App) error {
			if len(args) == 0 {
				specs, err := a.Setup.ToolSpecs(o)
				if err != nil {
					return err
				}
				w, list := c.columns(), []toolJSON{}
				for _, s := range specs {
					list = append(list, toolJSON{s.Name, s.Description})
					fmt.Fprintf(w, "%s\t%s\n", s.Name, repl.FirstSentence(s.Description))
				}
				if c.json {
					return c.printJSON(list)
				}
				return w.Flush()
			}
			raw := "{}"
			if len(args) == 2 {
				raw = args[1]
			}
			o.CanAsk = c.console.CanAsk()
			res, err := a.Setup.RunTool(cmd.Context(), o, args[0], []byte(raw), func(q runsetup.ToolQuestion) bool {
				return repl.Confirm(cmd.Context(), c.console, q.Approval, q.Label)
			})
			if err != nil {
				return err
			}
			if res.Denied != "" {
				fmt.Fprintf(c.console.Err, "chorus: %s\n", res.Denied)
				return exitError(repl.ExitDenied)
			}
			if c.json {
				c.exit = map[bool]int{true: repl.ExitFailed}[res.Failed]
				return c.printJSON(resultJSON{res.Text, res.Failed})
			}
			text := res.Text
			if !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			fmt.Fprint(c.out(), text)
			if res.Failed {
				return exitError(repl.ExitFailed)
			}
			return nil
		})
	}
	return cmd
}
