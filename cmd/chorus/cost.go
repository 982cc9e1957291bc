package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/costview"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/usage"
)

func (c *program) costCommand() *cobra.Command {
	commands := c.commands()
	cli.Render(commands, operations.GetCosts, func(v cli.View, _ operations.CostQuery, costs operations.Costs) error {
		return costview.Show(v, costview.Of(costs))
	})
	cli.JSON(commands, operations.GetCosts, func(_ cli.View, costs operations.Costs) any { return costview.Of(costs) })
	cli.Prepare(commands, operations.GetCosts, func(*cobra.Command) func(context.Context, cli.Connection, *operations.CostQuery, []string) error {
		return func(_ context.Context, _ cli.Connection, in *operations.CostQuery, _ []string) error {
			return checkGroup(in.By)
		}
	})
	cli.InvalidIsUsage(commands, operations.GetCosts)
	return c.serverFlags(commands.Command(operations.GetCosts))
}

// checkGroup checks that costs can be grouped by the given key.
func checkGroup(by string) error {
	f, _ := operations.GetCosts.Field("by")
	if slices.Contains(f.Enum, by) {
		return nil
	}
	return &usage.Error{Err: fmt.Errorf("costs cannot be grouped by %q; choose one of %s", by, strings.Join(f.Enum, ", "))}
}
