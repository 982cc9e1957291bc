package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/approval"
	"chorus/internal/markdown"
	"chorus/internal/permit/always"
	"chorus/internal/usage"
)

func (c *cli) allowedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "allowed", Short: "What you have allowed for good: list, remove", RunE: oneOf,
		Long: `A question may be answered with "always". Then a rule is kept: for whoever said it, for
one agent in one directory. It turns what would be asked into a yes, and never what a rule
denies or what cannot be told from the text. The rules lie in allowed.yaml in the home;
every process reads it again at the next question, so it may be edited while agents work.`,
		Example: `  chorus permit allowed list
  chorus permit allowed remove 3f2a91c0
  chorus approvals approve --always       say yes to a question, and keep a rule`,
	}
	list := c.jsonFlag(&cobra.Command{
		Use: "list", Short: "List the rules that are kept, the oldest first", Args: exactly(0),
		Example: `  chorus permit allowed list --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(a *app.App) error {
				list, err := a.Gate.ListAllowed()
				if err != nil {
					return err
				}
				return c.printKept(list)
			})
		},
	})
	remove := c.jsonFlag(&cobra.Command{
		Use: "remove ID…", Short: "Remove rules, so that it is asked again", Args: cobra.MinimumNArgs(1),
		Example: `  chorus permit allowed remove 3f2a91c0`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(a *app.App) error {
				gone, err := a.Gate.RemoveAllowed(cmd.Context(), args)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(nonNil(gone))
				}
				for _, k := range gone {
					fmt.Fprintf(c.out(), "removed %s: %s\n", k.ID, keptRule(k))
				}
				return nil
			})
		},
	})
	cmd.AddCommand(list, remove)
	return cmd
}

func (c *cli) printKept(list []always.Entry) error {
	if c.json {
		return c.printJSON(nonNil(list))
	}
	if len(list) == 0 {
		fmt.Fprintln(c.out(), "nothing is allowed for good")
		return nil
	}
	w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSINCE\tBY\tAGENT\tIN\tRULE")
	for _, k := range list {
		where := k.Dir
		if k.Channel != "" {
			where += " (" + k.Channel + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.At.Local().Format("2006-01-02 15:04"), k.By, k.Agent, where, keptRule(k))
	}
	return w.Flush()
}

// keptRule names the rules in a line.
func keptRule(k always.Entry) string {
	return clipLine(markdown.Visible(strings.Join(k.Rules, " ")), 100)
}

type stepJSON struct {
	Rules []string `json:"rules"`
	Means string   `json:"means"`
	Also  []string `json:"alsoAllows"`
	Still []string `json:"stillAsks"`
}

// approveAlways shows what "always" would mean, lets the person pick, and only then
// answers and keeps. A number says which without being asked.
func (c *cli) approveAlways(ctx context.Context, a *app.App, name string, number int) (approval.Approval, error) {
	x, err := a.Gate.FindApproval(ctx, name)
	if err != nil {
		return x, err
	}
	if x.State != approval.Open {
		return x, fmt.Errorf("too late: %s", x.Ended())
	}
	o, err := a.Gate.Propose(ctx, x.ID, a.Me())
	if err != nil {
		return x, err
	}
	if o.Never != "" {
		return x, fmt.Errorf("this cannot be allowed for good: %s; `chorus approvals approve %s` says yes once", o.Never, x.ID)
	}
	if number == 0 {
		if err := c.showAlways(x, o); err != nil {
			return x, err
		}
		if number, err = c.askNumber(len(o.Steps)); err != nil {
			return x, err
		}
	}
	if number < 1 || number > len(o.Steps) {
		return x, &usage.Error{Err: fmt.Errorf("there is no rule %d; there are %d, and without --rule they are shown", number, len(o.Steps))}
	}
	if err := a.Gate.Keep(ctx, x.ID, a.Me(), o.Steps[number-1].Rules); err != nil {
		return x, err
	}
	return a.DB.Approval(ctx, x.ID)
}

func (c *cli) showAlways(x approval.Approval, o approval.Always) error {
	if c.json {
		out := []stepJSON{}
		for _, s := range o.Steps {
			out = append(out, stepJSON{nonNil(s.Rules), s.Means, nonNil(s.Also), nonNil(s.Still)})
		}
		return c.printJSON(map[string]any{"id": x.ID, "where": o.Where, "rules": out})
	}
	writeAlways(c.out(), what(x), o)
	return nil
}

func writeAlways(w io.Writer, what string, o approval.Always) {
	fmt.Fprintf(w, "%s\nalways, %s:\n", what, o.Where)
	for i, s := range o.Steps {
		fmt.Fprintf(w, "%d  %s\n", i+1, markdown.Visible(s.Means))
		for _, r := range s.Rows() {
			fmt.Fprintf(w, "   %-11s  %s\n", r.Name, strings.ReplaceAll(markdown.Visible(r.Text), "\n", "\n"+strings.Repeat(" ", 16)))
		}
	}
}

// askNumber has the person pick; without a terminal nothing is answered.
func (c *cli) askNumber(n int) (int, error) {
	if !c.console.CanAsk() || c.json {
		return 0, errors.New("nothing was answered or kept; say which rule with --rule N")
	}
	fmt.Fprintf(c.out(), "keep which? [1-%d, anything else: none] ", n)
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	picked, perr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || perr != nil || picked < 1 || picked > n {
		return 0, errors.New("nothing was answered or kept")
	}
	return picked, nil
}
