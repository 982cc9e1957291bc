package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

func (c *program) projectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "project", Short: "Projects that tasks are for: create, list, show, edit, pause, resume, delete", RunE: oneOf,
		Long: `A project has repositories, notes and tasks. Its tasks are worked on by agents, each in a
checkout of its own, while chorus serve runs; projects share the workers by their weights.`,
		Example: `  chorus project create 'My Web App' --repo ~/src/web-app
  chorus task create 'Add a dark mode' -p my-web-app
  chorus project list`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Prepare(commands, operations.CreateProject, func(*cobra.Command) func(context.Context, cli.Connection, *operations.NewProject, []string) error {
			return func(_ context.Context, _ cli.Connection, in *operations.NewProject, _ []string) error {
				in.Repo = localFolder(in.Repo)
				return nil
			}
		})
	})
}

func (c *program) repoCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "repo", Short: "Repositories of projects: add, list", RunE: oneOf,
		Example: "  chorus repo add clone --url https://github.com/me/web-app.git -p my-web-app\n  chorus repo add link --path . -p website"}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Prepare(commands, operations.AddRepo, func(*cobra.Command) func(context.Context, cli.Connection, *operations.NewRepo, []string) error {
			return func(_ context.Context, _ cli.Connection, in *operations.NewRepo, _ []string) error {
				in.Path = localFolder(in.Path)
				return nil
			}
		})
	})
}

func (c *program) taskCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "task", Short: "Tasks that agents work on: create, list, show, diff, stop, restart, approve …", RunE: oneOf,
		Long: `A task is worked on by an agent in a checkout and on a branch of its own, and is completed
when its work is merged. chorus serve gives tasks to workers.`,
		Example: `  chorus task create 'Add a dark mode' -d 'settings.html gets a switch …' -p my-web-app
  chorus task list
  chorus task diff calm-otter
  chorus task approve calm-otter`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.GetTaskDiff, func(v cli.View, _ operations.TaskRef, d operations.TaskDiff) error {
			_, err := fmt.Fprintln(v.Out, strings.TrimRight(d.Diff, "\n"))
			return err
		})
	})
}

// localFolder is a folder that somebody named as a path here, as the server must know it; anything else stays.
func localFolder(name string) string {
	if name == "" || strings.Contains(name, "://") {
		return name
	}
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return name
	}
	if whole, err := filepath.Abs(name); err == nil {
		return whole
	}
	return name
}
