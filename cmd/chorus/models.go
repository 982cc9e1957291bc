package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/modelview"
	"chorus/internal/app"
	"chorus/internal/modelrouter"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

func (c *program) modelsCommand() *cobra.Command {
	refresh := false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "models", Short: "List providers and their models", Args: exactly(0),
		Long: `Lists the vendors and models that Chorus knows, with context window, prices and abilities.
With --refresh it asks every vendor that has a key, which also shows whether the key is
accepted, and rewrites available_models.json.`,
		Example: `  chorus models
  chorus models --refresh`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.remote() && !refresh {
				return c.serverModels(cmd.Context())
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				list := modelrouter.Available{}
				if refresh {
					var err error
					if list, err = a.Discovery.RefreshModels(cmd.Context(), c.showOffered); err != nil {
						return err
					}
				} else {
					list = a.Discovery.Available(c.warn)
				}
				all, err := a.Discovery.Catalog(list)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(all)
				}
				return modelview.Show(c.view(), all)
			})
		},
	})
	cmd.Flags().BoolVar(&refresh, "refresh", false, "ask the vendors and rewrite the list")
	return c.serverFlags(cmd)
}

// serverModels lists the models of a server.
func (c *program) serverModels(ctx context.Context) error {
	return c.execute(ctx, func(to cli.Connection) error {
		list, err := operations.ListModels.Call(ctx, to, to.Caller, operation.None{})
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(nonNil(list.Items))
		}
		return modelview.ShowServer(c.view(), list.Items)
	})
}

// showOffered prints the progress of a refresh, one line per vendor.
func (c *program) showOffered(name string, o modelrouter.Offered) {
	switch {
	case o.Error != "":
		c.warn(name + ": " + o.Error)
	case len(o.Models) == 1:
		fmt.Fprintf(c.console.Err, "%s: 1 model\n", name)
	default:
		fmt.Fprintf(c.console.Err, "%s: %d models\n", name, len(o.Models))
	}
}
