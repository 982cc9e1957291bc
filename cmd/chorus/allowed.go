package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/approvalview"
	"chorus/internal/approval"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl/remote"
	"chorus/internal/usage"
)

func (c *program) allowedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "allowed", Short: "Manage what you always allow: list, remove", RunE: onlySubcommands,
		Long: `Answering an approval with "always" keeps a rule: for the person who answered, one agent
and one directory. After that the same call runs without asking. A rule never allows what
another rule denies or what cannot be judged from the text. Rules are stored in
allowed.yaml in the home, which is read again before each call, so you may edit it while
agents work.`,
		Example: `  chorus permit allowed list
  chorus permit allowed remove 3f2a91c0
  chorus approvals approve --always       approve, and keep a rule`,
	}
	return c.serverFlags(cmd)
}

// allowedOverrides defines how kept rules are displayed.
func allowedOverrides(commands *cli.Commands) {
	cli.Render(commands, operations.ListRules, approvalview.Rules)
	cli.Render(commands, operations.RemoveRules, func(v cli.View, _ operations.RuleRefs, gone operation.List[operations.KeptRule]) error {
		for _, k := range gone.Items {
			fmt.Fprintf(v.Out, "removed %s: %s\n", k.ID, approvalview.RuleLine(k))
		}
		return nil
	})
	cli.InvalidIsUsage(commands, operations.RemoveRules)
}

// pickRules shows what "always" would allow and lets the person pick a rule. A nonzero number picks it without asking.
func (c *program) pickRules(ctx context.Context, to cli.Connection, id string, number int) ([]string, error) {
	a, err := operations.GetApproval.Call(ctx, to, to.Caller, operations.ApprovalRef{ID: id})
	if err != nil {
		return nil, err
	}
	x := remote.Approval(a)
	if x.State != approval.Open {
		x.AnsweredBy = cmp.Or(a.AnsweredByName, a.AnsweredBy)
		return nil, fmt.Errorf("too late: %s", x.Ended())
	}
	offer, err := operations.ProposeRules.Call(ctx, to, to.Caller, operations.ApprovalRef{ID: id})
	if err != nil {
		return nil, err
	}
	if offer.Never != "" {
		return nil, fmt.Errorf("%s; approve it once with `chorus approvals approve %s`", offer.Never, x.ID)
	}
	if number == 0 {
		if err := c.showAlways(x, offer); err != nil {
			return nil, err
		}
		if number, err = c.askNumber(len(offer.Rules)); err != nil {
			return nil, err
		}
	}
	if number < 1 || number > len(offer.Rules) {
		return nil, &usage.Error{Err: fmt.Errorf("there is no rule %d, only %d; leave out --rule to see them", number, len(offer.Rules))}
	}
	return offer.Rules[number-1].Rules, nil
}

func (c *program) showAlways(x approval.Approval, offer operations.RuleProposal) error {
	if c.json {
		for i := range offer.Rules {
			s := &offer.Rules[i]
			s.Rules, s.Also, s.Still = nonNil(s.Rules), nonNil(s.Also), nonNil(s.Still)
		}
		return c.printJSON(offer)
	}
	approvalview.Always(c.out(), approvalview.What(x), offer)
	return nil
}

// askNumber lets the person pick a number. Without a terminal it answers nothing.
func (c *program) askNumber(n int) (int, error) {
	if !c.console.CanAsk() || c.json {
		return 0, errors.New("nothing was answered or kept; choose a rule with --rule N")
	}
	fmt.Fprintf(c.out(), "Keep which rule? [1-%d, anything else: none] ", n)
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	picked, perr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || perr != nil || picked < 1 || picked > n {
		return 0, errors.New("nothing was answered or kept")
	}
	return picked, nil
}
