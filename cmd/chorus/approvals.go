package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl/remote"
	"chorus/internal/usage"
)

func (c *program) approvalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "approvals", Short: "Pending approvals: list, read, answer", RunE: oneOf,
		Long: `What an agent may not do without asking, and what a task gave that needs a yes, waits here until somebody answers, however
long that takes and whatever process asked. The first answer counts. A run that waits
in another terminal goes on by itself; one whose process has gone goes on with
its next chorus chat or chorus run --session-id.`,
		Example: `  chorus approvals list
  chorus approvals approve 01k3       a unique beginning of the id; without one, the only question there is
  chorus approvals approve --always   shows what a rule would allow, and keeps the one you pick
  chorus approvals deny 01k3 --note "not on a Friday"
  chorus approvals approve calm-otter   what a task gave, by the task's id`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Prepare(commands, operations.ListApprovals, allApprovals)
		cli.Render(commands, operations.ListApprovals, listApprovals)
		cli.JSON(commands, operations.ListApprovals, func(_ cli.View, list operation.List[operations.Approval]) any {
			out := []approvalJSON{}
			for _, x := range list.Items {
				out = append(out, approvalAsJSON(x))
			}
			return out
		})
		asJSON := func(_ cli.View, a operations.Approval) any { return approvalAsJSON(a) }
		cli.Prepare(commands, operations.GetApproval, func(*cobra.Command) func(context.Context, cli.Connection, *operations.ApprovalRef, []string) error {
			return func(ctx context.Context, to cli.Connection, in *operations.ApprovalRef, _ []string) (err error) {
				in.ID, err = onlyPending(ctx, to, in.ID)
				return err
			}
		})
		cli.Render(commands, operations.GetApproval, func(v cli.View, _ operations.ApprovalRef, a operations.Approval) error {
			if a.Task != "" {
				showTaskApproval(v.Out, a)
				return nil
			}
			showApproval(v.Out, remote.Question(a))
			return nil
		})
		cli.JSON(commands, operations.GetApproval, asJSON)
		cli.Prepare(commands, operations.AnswerApproval, c.answerFlags)
		cli.Render(commands, operations.AnswerApproval, answered)
		cli.JSON(commands, operations.AnswerApproval, asJSON)
	})
}

// allApprovals lets --all stand for every state.
func allApprovals(cmd *cobra.Command) func(context.Context, cli.Connection, *operations.ApprovalQuery, []string) error {
	all := cmd.Flags().Bool("all", false, "the answered ones too, the newest first")
	return func(_ context.Context, _ cli.Connection, in *operations.ApprovalQuery, _ []string) error {
		if *all {
			in.State = "all"
		}
		return nil
	}
}

// onlyPending is the approval that was named; without a name it is the only pending one.
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
		return "", &usage.Error{Err: fmt.Errorf("%d approvals are pending; say which: `chorus approvals list` shows them", len(list.Items))}
	}
	return list.Items[0].ID, nil
}

// answerFlags lets a yes keep a rule.
func (c *program) answerFlags(cmd *cobra.Command) func(context.Context, cli.Connection, *operations.Answer, []string) error {
	always, rule := false, 0
	if cmd.Name() == "approve" {
		cmd.Flags().BoolVar(&always, "always", false, "show which rules would allow it for good, and keep the one you pick")
		cmd.Flags().IntVar(&rule, "rule", 0, "with --always: keep this one, without being asked")
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

func answered(v cli.View, _ operations.Answer, a operations.Approval) error {
	x := remote.Question(a)
	if x.State == approval.Open {
		_, err := fmt.Fprintf(v.Out, "noted; another person must say yes too: %s\n", what(x))
		return err
	}
	_, err := fmt.Fprintf(v.Out, "%s: %s\n", x.State, what(x))
	if err == nil && v.Server == "" && a.Task == "" {
		_, err = fmt.Fprintf(v.Out, "if nothing runs there any more, go on with: chorus chat --session-id %s\n", x.Thread.Thread())
	}
	return err
}

type approvalJSON struct {
	ID         string            `json:"id"`
	Kind       string            `json:"kind"`
	TaskID     string            `json:"taskId,omitempty"`
	ProjectID  string            `json:"projectId,omitempty"`
	Answer     string            `json:"answer,omitempty"`
	SessionID  string            `json:"sessionId"`
	Thread     chat.ThreadID     `json:"thread"`
	Run        string            `json:"run"`
	CallID     string            `json:"callId"`
	Tool       string            `json:"tool"`
	Args       json.RawMessage   `json:"args"`
	Actions    []string          `json:"actions"`
	Dir        string            `json:"dir"`
	Risk       string            `json:"risk,omitempty"`
	RiskWhy    string            `json:"riskWhy,omitempty"`
	Parts      []chat.JudgedPart `json:"parts,omitempty"`
	Rule       string            `json:"rule,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	Again      string            `json:"again,omitempty"`
	Preview    string            `json:"preview,omitempty"`
	Bound      json.RawMessage   `json:"bound,omitempty"`
	AskedBy    string            `json:"askedBy"`
	Payer      string            `json:"payer"`
	AskedAt    time.Time         `json:"askedAt"`
	Deadline   time.Time         `json:"deadline,omitzero"`
	By         string            `json:"mayAnswer"`
	Votes      []voteJSON        `json:"answers"`
	State      approval.State    `json:"state"`
	AnsweredBy string            `json:"answeredBy,omitempty"`
	AnsweredAt time.Time         `json:"answeredAt,omitzero"`
	Note       string            `json:"note,omitempty"`
}

type voteJSON struct {
	By   string    `json:"by"`
	OK   bool      `json:"approved"`
	Note string    `json:"note,omitempty"`
	At   time.Time `json:"at"`
}

func approvalAsJSON(shown operations.Approval) approvalJSON {
	a := remote.Question(shown)
	out := approvalJSON{ID: a.ID, Kind: shown.Kind, TaskID: shown.Task, ProjectID: shown.Project, Answer: shown.Answer, SessionID: a.Thread.Thread(), Thread: a.Thread, Run: a.Run, CallID: a.Call.ID, Tool: a.Call.Name,
		Args: a.Call.Args, Actions: nonNil(a.Actions), Dir: a.Dir, Risk: a.Risk, RiskWhy: a.RiskWhy, Parts: a.Parts, Rule: a.Rule, Reason: a.Reason, Again: a.Again,
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

func listApprovals(v cli.View, _ operations.ApprovalQuery, page operation.List[operations.Approval]) error {
	if len(page.Items) == 0 {
		fmt.Fprintln(v.Out, operations.ListApprovals.Empty)
		return nil
	}
	w := v.Columns()
	if v.Narrow() {
		fmt.Fprintln(w, "ID\tSTATE\tASKED\tRISK\tWHAT")
	} else {
		fmt.Fprintln(w, "ID\tKIND\tSTATE\tASKED\tUNTIL\tBY\tRISK\tWHAT")
	}
	for _, shown := range page.Items {
		x := remote.Question(shown)
		if v.Narrow() {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", x.ID, standing(x), x.AskedAt.Local().Format("2006-01-02 15:04"), x.Risk, what(x))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, shown.Kind, standing(x), x.AskedAt.Local().Format("2006-01-02 15:04"), until(x), x.AskedBy, x.Risk, what(x))
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

// showTaskApproval shows what a task waits for.
func showTaskApproval(w io.Writer, a operations.Approval) {
	for _, row := range [][2]string{{"task", a.Task}, {"project", a.Project}, {"kind", a.Kind}, {"agent", a.Agent}, {"does", a.Label}, {"why", a.Reason}, {"at", a.Preview}, {"asked by", a.AskedBy},
		{"asked at", a.AskedAt.Local().Format("2006-01-02 15:04:05")}, {"who", a.Who}, {"state", a.State}, {"answer", a.Answer}} {
		if row[1] != "" {
			fmt.Fprintf(w, "%-9s %s\n", row[0], strings.ReplaceAll(markdown.Visible(row[1]), "\n", "\n          "))
		}
	}
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
	row("not bound", approval.Unbound(a.Bound))
	row("risk", a.Line())
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
