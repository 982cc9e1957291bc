package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/markdown"
)

func (c *cli) approvalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "approvals", Short: "Pending approvals: list, read, answer", RunE: oneOf,
		Long: `What an agent may not do without asking waits here until somebody answers, however
long that takes and whatever process asked. The first answer counts. A run that waits
in another terminal goes on by itself; one whose process has gone goes on with
its next chorus chat or chorus run --session-id.`,
		Example: `  chorus approvals list
  chorus approvals approve 01k3       a unique beginning of the id; without one, the only question there is
  chorus approvals approve --always   shows what a rule would allow, and keeps the one you pick
  chorus approvals deny 01k3 --note "not on a Friday"`,
	}
	cmd.AddCommand(c.approvalsList(), c.approvalsShow(), c.approvalsAnswer(true), c.approvalsAnswer(false))
	return c.serverFlags(cmd)
}

type approvalJSON struct {
	ID         string          `json:"id"`
	SessionID  string          `json:"sessionId"`
	Thread     chat.ThreadID   `json:"thread"`
	Run        string          `json:"run"`
	CallID     string          `json:"callId"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args"`
	Actions    []string        `json:"actions"`
	Dir        string          `json:"dir"`
	Risk       string          `json:"risk,omitempty"`
	Rule       string          `json:"rule,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Again      string          `json:"again,omitempty"`
	Preview    string          `json:"preview,omitempty"`
	Bound      json.RawMessage `json:"bound,omitempty"`
	AskedBy    string          `json:"askedBy"`
	Payer      string          `json:"payer"`
	AskedAt    time.Time       `json:"askedAt"`
	Deadline   time.Time       `json:"deadline,omitzero"`
	By         string          `json:"mayAnswer"`
	Votes      []voteJSON      `json:"answers"`
	State      approval.State  `json:"state"`
	AnsweredBy string          `json:"answeredBy,omitempty"`
	AnsweredAt time.Time       `json:"answeredAt,omitzero"`
	Note       string          `json:"note,omitempty"`
}

type voteJSON struct {
	By   string    `json:"by"`
	OK   bool      `json:"approved"`
	Note string    `json:"note,omitempty"`
	At   time.Time `json:"at"`
}

func approvalAsJSON(a approval.Approval) approvalJSON {
	out := approvalJSON{ID: a.ID, SessionID: a.Thread.Thread(), Thread: a.Thread, Run: a.Run, CallID: a.Call.ID, Tool: a.Call.Name,
		Args: a.Call.Args, Actions: nonNil(a.Actions), Dir: a.Dir, Risk: a.Risk, Rule: a.Rule, Reason: a.Reason, Again: a.Again,
		Preview: a.Preview, Bound: a.Bound, AskedBy: a.AskedBy.String(), Payer: a.Payer.String(), AskedAt: a.AskedAt, Deadline: a.Deadline,
		By: mayAnswer(a), Votes: []voteJSON{}, State: a.State, AnsweredBy: a.AnsweredBy, AnsweredAt: a.AnsweredAt, Note: a.Note}
	for _, v := range a.Votes {
		out.Votes = append(out.Votes, voteJSON{v.By.String(), v.OK, v.Note, v.At})
	}
	return out
}

func mayAnswer(a approval.Approval) string {
	if a.Who == "" {
		return approval.DefaultWho
	}
	return a.Who
}

func (c *cli) approvalsList() *cobra.Command {
	all := false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "list", Short: "List the questions that wait, the oldest first", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.remote() {
				return c.farApprovals(cmd.Context(), all)
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				f := approval.Filter{State: approval.Open}
				if all {
					f = approval.Filter{Newest: true}
				}
				list, err := a.Gate.Approvals().Approvals(cmd.Context(), f)
				if err != nil {
					return err
				}
				return c.printApprovals(list)
			})
		},
	})
	cmd.Flags().BoolVar(&all, "all", false, "the answered ones too, the newest first")
	return cmd
}

func (c *cli) printApprovals(list []approval.Approval) error {
	if c.json {
		out := []approvalJSON{}
		for _, x := range list {
			out = append(out, approvalAsJSON(x))
		}
		return c.printJSON(out)
	}
	if len(list) == 0 {
		fmt.Fprintln(c.out(), "nothing waits for an answer")
		return nil
	}
	w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tASKED\tUNTIL\tBY\tRISK\tWHAT")
	for _, x := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, standing(x), x.AskedAt.Local().Format("2006-01-02 15:04"), until(x), x.AskedBy, x.Risk, what(x))
	}
	return w.Flush()
}

// standing is the state in a few letters: a first yes is seen.
func standing(a approval.Approval) string {
	if a.State == approval.Open && len(a.Votes) > 0 {
		return "1 of 2"
	}
	return string(a.State)
}

func until(a approval.Approval) string {
	if a.Deadline.IsZero() {
		return "-"
	}
	return a.Deadline.Local().Format("2006-01-02 15:04")
}

// what names the call in a line.
func what(a approval.Approval) string {
	text := a.Call.Name
	if len(a.Actions) > 0 {
		text = strings.TrimPrefix(a.Actions[0], "tool:")
	}
	if len(a.Actions) > 1 {
		text += fmt.Sprintf(" and %d more", len(a.Actions)-1)
	}
	return clipLine(markdown.Visible(text), 70)
}

func (c *cli) approvalsShow() *cobra.Command {
	return c.jsonFlag(&cobra.Command{
		Use: "show [ID]", Short: "Show a question with all there is to know", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.remote() {
				return c.farApproval(cmd.Context(), strings.Join(args, ""))
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				x, err := a.Gate.FindApproval(cmd.Context(), strings.Join(args, ""))
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(approvalAsJSON(x))
				}
				showApproval(c.out(), x)
				return nil
			})
		},
	})
}

func showApproval(w io.Writer, a approval.Approval) {
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-9s %s\n", name, strings.ReplaceAll(strings.TrimRight(markdown.Visible(value), "\n"), "\n", "\n          "))
		}
	}
	row("id", a.ID)
	row("session", a.Thread.Thread())
	row("agent", a.Thread.Agent())
	row("tool", a.Call.Name)
	row("call", string(a.Call.Args))
	row("does", strings.Join(a.Actions, "\n"))
	row("in", a.Dir)
	row("rule", a.Rule)
	row("why", a.Reason)
	row("risk", a.Risk)
	row("asked by", a.AskedBy.String())
	row("paid by", a.Payer.String())
	row("asked at", a.AskedAt.Local().Format("2006-01-02 15:04:05"))
	if !a.Deadline.IsZero() {
		row("until", a.Deadline.Local().Format("2006-01-02 15:04:05"))
	}
	row("who", mayAnswer(a))
	for _, v := range a.Votes {
		word := "no"
		if v.OK {
			word = "yes"
		}
		row(word, strings.TrimSpace(v.By.String()+" "+v.At.Local().Format("2006-01-02 15:04:05")+" "+v.Note))
	}
	row("state", string(a.State))
	row("", a.Ended())
	if a.Preview != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimRight(markdown.Visible(a.Preview), "\n"))
	}
}

func (c *cli) approvalsAnswer(ok bool) *cobra.Command {
	use, short := "approve", "Say yes to a question"
	if !ok {
		use, short = "deny", "Say no to a question"
	}
	note, always, rule := "", false, 0
	cmd := c.jsonFlag(&cobra.Command{
		Use: use + " [ID]", Short: short, Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.remote() && !always && rule == 0 {
				return c.farAnswer(cmd.Context(), strings.Join(args, ""), ok, note)
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				var x approval.Approval
				var err error
				if always || rule != 0 {
					x, err = c.approveAlways(cmd.Context(), a, strings.Join(args, ""), rule)
				} else {
					x, err = a.Gate.Approve(cmd.Context(), strings.Join(args, ""), ok, note)
				}
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(approvalAsJSON(x))
				}
				switch {
				case x.State == approval.Open:
					fmt.Fprintf(c.out(), "noted; another person must say yes too: %s\n", what(x))
				default:
					fmt.Fprintf(c.out(), "%s: %s\n", x.State, what(x))
					fmt.Fprintf(c.out(), "if nothing runs there any more, go on with: chorus chat --session-id %s\n", x.Thread.Thread())
				}
				return nil
			})
		},
	})
	cmd.Flags().StringVar(&note, "note", "", "a reason; the agent reads it when the answer is no")
	if ok {
		cmd.Flags().BoolVar(&always, "always", false, "show which rules would allow it for good, and keep the one you pick")
		cmd.Flags().IntVar(&rule, "rule", 0, "with --always: keep this one, without being asked")
	}
	return cmd
}
