package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/skillview"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/usage"
)

func (c *program) skillCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "skill", Short: "List, review and approve skills", RunE: onlySubcommands,
		Long: `A skill is a folder with a SKILL.md: instructions for a task, perhaps with scripts. Skills are
found in .agents/skills, .chorus/skills and .claude/skills of the repository and of your
home directory, and in the skills folders of the home of Chorus. A skill is off until you
have reviewed and approved it, and off again when one of its files changes. Tools of MCP
servers are listed too: a tool whose description changed is off until you have reviewed it.`,
		Example: `  chorus skill list
  chorus skill diff deploy        show what you would approve
  chorus skill approve deploy     show it, ask, and keep a copy for agents
  chorus skill disable deploy`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Prepare(commands, operations.ListSkills, func(cmd *cobra.Command) func(context.Context, cli.Connection, *operations.SkillQuery, []string) error {
			all := cmd.Flags().Bool("all", false, "include every known folder, channel and agent")
			return func(_ context.Context, to cli.Connection, in *operations.SkillQuery, _ []string) error {
				return here(to, &in.SkillPlace, *all)
			}
		})
		ref := func(*cobra.Command) func(context.Context, cli.Connection, *operations.SkillRef, []string) error {
			return func(_ context.Context, to cli.Connection, in *operations.SkillRef, _ []string) error {
				return here(to, &in.SkillPlace, false)
			}
		}
		cli.Prepare(commands, operations.GetSkill, ref)
		cli.Render(commands, operations.GetSkill, func(v cli.View, _ operations.SkillRef, s operations.SkillDetail) error {
			return skillview.Show(v, s)
		})
		cli.Prepare(commands, operations.DiffSkill, ref)
		cli.Render(commands, operations.DiffSkill, func(v cli.View, _ operations.SkillRef, d operations.SkillDiff) error {
			return skillview.ShowDiff(v, d)
		})
		cli.Prepare(commands, operations.DisableSkill, ref)
		cli.Prepare(commands, operations.ApproveSkill, c.approveSkill)
	})
}

// here includes the current folder, unless the person chose otherwise.
func here(to cli.Connection, in *operations.SkillPlace, all bool) error {
	folder := "."
	if in.Session != "" || all {
		folder = ""
	}
	return workFolder(to, &in.Workspace, folder)
}

// workFolder makes a folder on this machine absolute. If none is named it uses other, if that is set.
func workFolder(to cli.Connection, path *string, other string) (err error) {
	if to.Server != "" {
		return nil // the server has other folders
	}
	if *path = cmp.Or(*path, other); *path == "" {
		return nil
	}
	if *path, err = filepath.Abs(*path); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(*path); err == nil {
		*path = real
	}
	return nil
}

// approveSkill shows what would be approved and asks. The digest ties the approval to what was shown.
func (c *program) approveSkill(cmd *cobra.Command) func(context.Context, cli.Connection, *operations.SkillApproval, []string) error {
	yes := cmd.Flags().BoolP("yes", "y", false, "do not ask")
	return func(ctx context.Context, to cli.Connection, in *operations.SkillApproval, _ []string) error {
		if err := here(to, &in.SkillPlace, false); err != nil {
			return err
		}
		if in.Digest != "" {
			return nil
		}
		d, err := operations.DiffSkill.Call(ctx, to, to.Caller, operations.SkillRef{Name: in.Name, SkillPlace: in.SkillPlace})
		if err != nil {
			return err
		}
		if d.Status == "on" {
			return fmt.Errorf("%s is already on; nothing has changed since it was approved", d.Name)
		}
		in.Name, in.Digest = d.ID, d.Digest
		if *yes {
			return nil
		}
		if err := skillview.ShowDiff(cli.View{Out: c.console.Err, Width: c.width()}, d); err != nil {
			return err
		}
		if !c.console.CanAsk() {
			return &usage.Error{Err: fmt.Errorf("there is no terminal to ask on; review it with chorus skill diff %s, then add --yes", d.Name)}
		}
		fmt.Fprint(c.console.Err, "Let agents use it? [y/N] ")
		var answer string
		if _, err := fmt.Fscanln(os.Stdin, &answer); err != nil || answer != "y" && answer != "yes" {
			return errors.New("nothing was changed")
		}
		return nil
	}
}
