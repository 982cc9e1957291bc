package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/taskview"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

func (c *program) projectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "project", Short: "Manage projects", RunE: onlySubcommands,
		Long: `A project has repositories, notes and tasks. While chorus serve runs, agents work on its tasks,
each in its own checkout. Projects share the workers by their weights.`,
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
		cli.Render(commands, operations.ReadFile, func(v cli.View, _ operations.FileQuery, f operations.FileText) error {
			_, err := fmt.Fprintln(v.Out, strings.TrimSuffix(f.Content, "\n"))
			return err
		})
		cli.Render(commands, operations.SearchFiles, func(v cli.View, _ operations.FileSearch, f operations.FilesFound) error {
			_, err := fmt.Fprintln(v.Out, strings.TrimSuffix(f.Results, "\n"))
			return err
		})
		cli.Render(commands, operations.RunProjectCommand, func(v cli.View, _ operations.ShellCommand, r operations.CommandResult) error {
			if _, err := fmt.Fprint(v.Out, r.Stdout, r.Stderr); err != nil {
				return err
			}
			if r.Cut {
				fmt.Fprintln(v.Out, "… the output is longer than this")
			}
			if r.Code != 0 {
				return fmt.Errorf("the command exited with code %d", r.Code)
			}
			return nil
		})
	})
}

func (c *program) repoCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "repo", Short: "Add and list repositories of projects", RunE: onlySubcommands,
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

func (c *program) gitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "git", Short: "Work on repositories of projects: status, diff, commit, push, merge …", RunE: onlySubcommands,
		Long: `These commands work on the repositories of projects, independently of tasks. A linked repository
is worked on in place and never pushed. For a cloned or new one the project has its own checkout,
whose branch workspace follows the default branch.`,
		Example: `  chorus git status -p my-web-app
  chorus git diff -p my-web-app --base main
  chorus git merge mend-settings -p my-web-app`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.GetGitStatus, func(v cli.View, _ operations.GitStatusQuery, all operations.GitStatuses) error {
			for _, r := range all.Repos {
				state := cmp.Or(r.Branch, r.Error, "no branch")
				if r.Ahead+r.Behind > 0 {
					state += fmt.Sprintf(", %d ahead, %d behind", r.Ahead, r.Behind)
				}
				fmt.Fprintf(v.Out, "%s (%s)\n", r.Repo, state)
				for _, line := range append(append([]string{r.Note}, strings.Split(r.Status, "\n")...), r.Recent...) {
					if line != "" {
						fmt.Fprintf(v.Out, "  %s\n", line)
					}
				}
			}
			return nil
		})
		cli.Render(commands, operations.GetGitLog, func(v cli.View, _ operations.GitLogQuery, all operations.GitLogs) error {
			for _, r := range all.Repos {
				if len(all.Repos) > 1 {
					fmt.Fprintf(v.Out, "%s (%s)\n", r.Repo, r.Branch)
				}
				fmt.Fprintln(v.Out, cmp.Or(r.Log, r.Error))
			}
			return nil
		})
		cli.Render(commands, operations.GetGitDiff, func(v cli.View, _ operations.GitDiffQuery, all operations.GitDiffs) error {
			for _, r := range all.Repos {
				if len(all.Repos) > 1 {
					fmt.Fprintf(v.Out, "%s against %s\n", r.Repo, r.Base)
				}
				fmt.Fprintln(v.Out, strings.TrimRight(cmp.Or(r.Diff, r.Error), "\n"))
				if r.Truncated {
					fmt.Fprintln(v.Out, "… the diff is longer than this")
				}
			}
			return nil
		})
	})
}

func (c *program) taskCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "task", Short: "Manage tasks that agents work on", RunE: onlySubcommands,
		Long: `An agent works on a task in its own checkout and on its own branch. The task is completed when
its work is merged. chorus serve gives tasks to workers.`,
		Example: `  chorus task create 'Add a dark mode' -d 'settings.html gets a switch …' -p my-web-app
  chorus task list
  chorus task watch calm-otter
  chorus task diff calm-otter
  chorus task approve calm-otter`,
	}
	cmd.AddCommand(c.watchTaskCommand())
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.GetTaskDiff, func(v cli.View, _ operations.TaskDiffQuery, d operations.TaskDiff) error {
			_, err := fmt.Fprintln(v.Out, strings.TrimRight(d.Diff, "\n"))
			return err
		})
		cli.Render(commands, operations.GetTaskTree, func(_ cli.View, _ operations.TaskRef, list operation.List[operations.TaskNode]) error {
			_, err := io.WriteString(c.styled(), taskview.Tree(list.Items, c.look()))
			return err
		})
	})
}

// watchTaskCommand follows a task in the terminal.
func (c *program) watchTaskCommand() *cobra.Command {
	return &cobra.Command{Use: "watch ID", Short: "Watch a task until it ends or needs approval", Args: exactly(1),
		Long: `Shows on one line how far the task is and what its worker does. If the output is not a terminal,
it prints each step on its own line. Exits with 1 if the task failed or is blocked.`,
		Example: "  chorus task watch calm-otter",
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			err = taskview.Watch(cmd.Context(), to, args[0], c.console, c.styled())
			if errors.Is(err, taskview.ErrBad) {
				err = exitError(1)
			}
			return errors.Join(err, to.Close())
		}}
}

func (c *program) workCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "work", Short: "Show all work at a glance, pause and resume it", RunE: onlySubcommands, Example: "  chorus work status\n  chorus work control pause"}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.GetWorkStatus, func(_ cli.View, _ operation.None, s operations.WorkStatus) error {
			_, err := io.WriteString(c.styled(), taskview.Status(s, c.look(), c.width()))
			return err
		})
	})
}

// localFolder makes a path on this machine absolute, so that the server understands it. Anything else stays as it is.
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
