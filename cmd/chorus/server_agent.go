package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"chorus/internal/agents"
	"chorus/internal/command"
)

// farCreateAgent makes an agent on a server.
func (c *cli) farCreateAgent(ctx context.Context, a agents.Agent) error {
	return c.at(func(service command.Service) error {
		made, err := service.CreateAgent(ctx, command.Caller{}, command.NewAgent{Name: a.Name, Model: a.Model, Permissions: a.Permissions, SystemPrompt: a.SystemPrompt})
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(made)
		}
		fmt.Fprintf(c.out(), "%s is ready\ntalk to it there:  chorus chat --server %s --agent %s\n", made.Name, c.far.server, made.Name)
		return nil
	})
}

// farAgent shows an agent of a server.
func (c *cli) farAgent(ctx context.Context, name string) error {
	return c.at(func(service command.Service) error {
		a, err := service.GetAgent(ctx, command.Caller{}, name)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(a)
		}
		w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
		fmt.Fprintf(w, "name\t%s\nmodel\t%s\npermissions\t%s\nworkspace\t%s\n", a.Name, orElse(a.Model, "(default)"), orElse(a.Permissions, "standard"), orElse(a.Workspace, "–"))
		var names []string
		for _, t := range a.Tools {
			names = append(names, t.Name)
		}
		if len(names) > 0 {
			fmt.Fprintf(w, "tools\t%s\n", strings.Join(names, ", "))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if a.SystemPrompt != "" {
			fmt.Fprintf(c.out(), "\n%s\n", a.SystemPrompt)
		}
		return nil
	})
}

// farConfigureAgent changes one setting of an agent of a server.
func (c *cli) farConfigureAgent(ctx context.Context, name, key, value string) error {
	return c.at(func(service command.Service) error {
		a, err := service.ConfigureAgent(ctx, command.Caller{}, name, key, value)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(a)
		}
		fmt.Fprintf(c.out(), "%s: %s is set; it counts from the next run on\n", a.Name, key)
		return nil
	})
}

// farDestroyAgent removes an agent of a server.
func (c *cli) farDestroyAgent(ctx context.Context, name string, keep bool) error {
	return c.at(func(service command.Service) error {
		if err := service.DestroyAgent(ctx, command.Caller{}, name, keep); err != nil {
			return err
		}
		fmt.Fprintf(c.out(), "%s is gone\n", name)
		return nil
	})
}
