package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/approvalview"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/usage"
)

func (c *program) approvalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "approvals", Short: "List, read and answer pending approvals", RunE: onlySubcommands,
		Long: `Calls that an agent may not make without asking, and results of tasks that need approval,
wait here until somebody answers, however long that takes and whichever process asked. The
first answer counts. A run that waits in another terminal continues by itself. If its
process is gone, it continues with the next chorus chat or chorus run --session-id.`,
		Example: `  chorus approvals list
  chorus approvals approve 01k3         the start of an id is enough; without an id, the only pending one
  chorus approvals approve --always     show what a rule would allow, and keep the one you pick
  chorus approvals deny 01k3 --note "not on a Friday"
  chorus approvals approve calm-otter   the result of a task, by the task's id`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Prepare(commands, operations.ListApprovals, allApprovals)
		cli.Render(commands, operations.ListApprovals, approvalview.List)
		cli.JSON(commands, operations.ListApprovals, func(_ cli.View, list operation.List[operations.Approval]) any {
			out := []approvalview.JSON{}
			for _, x := range list.Items {
				out = append(out, approvalview.AsJSON(x))
			}
			return out
		})
		asJSON := func(_ cli.View, a operations.Approval) any { return approvalview.AsJSON(a) }
		cli.Prepare(commands, operations.GetApproval, func(*cobra.Command) func(context.Context, cli.Connection, *operations.ApprovalRef, []string) error {
			return func(ctx context.Context, to cli.Connection, in *operations.ApprovalRef, _ []string) (err error) {
				in.ID, err = onlyPending(ctx, to, in.ID)
				return err
			}
		})
		cli.Render(commands, operations.GetApproval, func(v cli.View, _ operations.ApprovalRef, a operations.Approval) error {
			if a.Task != "" {
				approvalview.ShowTask(v.Out, a)
				return nil
			}
			approvalview.Show(v.Out, a)
			return nil
		})
		cli.JSON(commands, operations.GetApproval, asJSON)
		cli.Prepare(commands, operations.AnswerApproval, c.answerFlags)
		cli.Render(commands, operations.AnswerApproval, approvalview.Answered)
		cli.JSON(commands, operations.AnswerApproval, asJSON)
	})
}

// allApprovals makes --all select every state.
func allApprovals(cmd *cobra.Command) func(context.Context, cli.Connection, *operations.ApprovalQuery, []string) error {
	all := cmd.Flags().Bool("all", false, "include answered ones, newest first")
	return func(_ context.Context, _ cli.Connection, in *operations.ApprovalQuery, _ []string) error {
		if *all {
			in.State = "all"
		}
		return nil
	}
}

// onlyPending returns the named approval or, without a name, the only pending one.
func onlyPending(ctx context.Context, to cli.Connection, id string) (string, error) {
	if id != "" {
		return id, nil
	}
	list, err := operations.ListApprovals.Call(ctx, to, to.Caller, operations.ApprovalQuery{Limit: 200})
	switch {
	case err != nil:
		return "", err
	case len(list.Items) == 0:
		return "", errors.New("there are no pending approvals")
	case len(list.Items) > 1:
		return "", &usage.Error{Err: fmt.Errorf("%d approvals are pending; name one (`chorus approvals list` shows them)", len(list.Items))}
	}
	return list.Items[0].ID, nil
}

// answerFlags adds the flags that let an approval keep a rule.
func (c *program) answerFlags(cmd *cobra.Command) func(context.Context, cli.Connection, *operations.Answer, []string) error {
	always, rule := false, 0
	if cmd.Name() == "approve" {
		cmd.Flags().BoolVar(&always, "always", false, "show which rules would always allow it, and keep the one you pick")
		cmd.Flags().IntVar(&rule, "rule", 0, "with --always: keep the rule with this number, without asking")
	}
	return func(ctx context.Context, to cli.Connection, in *operations.Answer, _ []string) (err error) {
		if in.ID, err = onlyPending(ctx, to, in.ID); err != nil {
			return err
		}
		if always || rule != 0 {
			in.Always, err = c.pickRules(ctx, to, in.ID, rule)
		}
		return err
	}
}
