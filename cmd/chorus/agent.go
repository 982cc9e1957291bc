package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/agents"
	"chorus/internal/app"
	"chorus/internal/usage"
)

func (c *cli) agentCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "agent", Short: "Agents: who they are and what they may do", RunE: oneOf}
	cmd.AddCommand(c.agentCreate(), c.agentList(), c.agentShow(), c.agentConfig(), c.agentDestroy())
	return c.serverFlags(cmd)
}

func (c *cli) agentCreate() *cobra.Command {
	var a agents.Agent
	cmd := c.jsonFlag(&cobra.Command{
		Use: "create NAME", Short: "Make an agent with a workspace of its own", Args: exactly(1),
		Long: `Makes agents/NAME in the home folder: agent.json, docs/ and a workspace that is a
git repository. A folder template/ in the home replaces the built-in one.`,
		Example: `  chorus agent create frontend --prompt "You look after the web pages."
  chorus chat --agent frontend`,
	})
	cmd.Flags().StringVar(&a.SystemPrompt, "prompt", "", "who the agent is and what it does")
	cmd.Flags().StringVarP(&a.Model, "model", "m", "", "model (default: the home's)")
	cmd.Flags().StringVar(&a.Permissions, "permissions", "", "permission profile (default standard)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.Name = args[0]
		if c.remote() {
			return c.farCreateAgent(cmd.Context(), a)
		}
		return c.with(cmd.Context(), func(app *app.App) error {
			made, err := app.Gate.CreateAgent(cmd.Context(), a)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(made)
			}
			ws := app.Settings.Agents().Workspace(made.Name)
			fmt.Fprintf(c.out(), "%s is ready\ntalk to it about this directory:  chorus chat --agent %s\nin a workspace of its own:        chorus chat --agent %s --repo %s\n", made.Name, made.Name, made.Name, ws)
			return nil
		})
	}
	return cmd
}

func (c *cli) agentList() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "list", Short: "List the agents", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.remote() {
				return c.farAgents(cmd.Context())
			}
			return c.with(cmd.Context(), func(app *app.App) error {
				list, err := app.Settings.Agents().List(cmd.Context())
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(nonNil(list))
				}
				if len(list) == 0 {
					fmt.Fprintln(c.out(), "there are no agents; make one with: chorus agent create NAME")
					return nil
				}
				w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(w, "NAME\tMODEL\tPERMISSIONS\tCREATED")
				for _, a := range list {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.Name, orElse(a.Model, "(default)"), orElse(a.Permissions, "standard"), when(a.CreatedAt))
				}
				return w.Flush()
			})
		},
	})
}

func (c *cli) agentShow() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "show NAME", Short: "Show an agent", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.remote() {
				return c.farAgent(cmd.Context(), args[0])
			}
			return c.with(cmd.Context(), func(app *app.App) error {
				a, err := app.Settings.Agents().Get(cmd.Context(), args[0])
				var file *agents.FileError
				if errors.As(err, &file) {
					c.warn(err.Error())
				} else if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(a)
				}
				w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
				fmt.Fprintf(w, "name\t%s\nmodel\t%s\npermissions\t%s\nworkspace\t%s\n", a.Name, orElse(a.Model, "(default)"), orElse(a.Permissions, "standard"), app.Settings.Agents().Workspace(a.Name))
				if len(a.Tools) > 0 {
					fmt.Fprintf(w, "tools\t%s\n", strings.Join(a.Tools, ", "))
				}
				if err := w.Flush(); err != nil {
					return err
				}
				if a.SystemPrompt != "" {
					fmt.Fprintf(c.out(), "\n%s\n", a.SystemPrompt)
				}
				return nil
			})
		},
	})
}

func (c *cli) agentConfig() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "config NAME KEY VALUE", Short: "Change one setting of an agent", Args: exactly(3),
		Example: `  chorus agent config frontend model anthropic/claude-sonnet-4-5
  chorus agent config frontend permissions guarded`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.remote() {
				return c.farConfigureAgent(cmd.Context(), args[0], args[1], args[2])
			}
			return c.with(cmd.Context(), func(app *app.App) error {
				a, err := app.Gate.ConfigureAgent(cmd.Context(), args[0], args[1], args[2])
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(a)
				}
				fmt.Fprintf(c.out(), "%s: %s is set; it counts from the next run on\n", a.Name, args[1])
				return nil
			})
		},
	})
}

func (c *cli) agentDestroy() *cobra.Command {
	var keep, yes bool
	cmd := &cobra.Command{
		Use: "destroy NAME", Short: "Remove an agent", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return &usage.Error{Err: fmt.Errorf("this removes %s for good; say --yes if you mean it (and --keep-files to keep its folder)", args[0])}
			}
			if c.remote() {
				return c.farDestroyAgent(cmd.Context(), args[0], keep)
			}
			return c.with(cmd.Context(), func(app *app.App) error {
				if err := app.Gate.DestroyAgent(cmd.Context(), args[0], keep); err != nil {
					return err
				}
				fmt.Fprintf(c.out(), "%s is gone\n", args[0])
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&keep, "keep-files", false, "keep its files, in .trash of the home folder")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "really")
	return cmd
}

// when shows a moment; an agent.json written by hand may have none.
func when(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func (c *cli) printJSON(v any) error {
	enc := json.NewEncoder(c.out())
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// nonNil makes an empty list print as [] and not as null.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
