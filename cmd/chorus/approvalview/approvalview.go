// Package approvalview shows approvals on a terminal and as JSON: as a table, and one in full detail.
package approvalview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/permit/action"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl/remote"
)

// Answered prints the effect of an answer.
func Answered(v cli.View, _ operations.Answer, a operations.Approval) error {
	x := remote.Approval(a)
	if x.State == approval.Open {
		_, err := fmt.Fprintf(v.Out, "noted; another person must approve it too: %s\n", What(x))
		return err
	}
	_, err := fmt.Fprintf(v.Out, "%s: %s\n", x.State, What(x))
	if err == nil && v.Server == "" && a.Task == "" {
		_, err = fmt.Fprintf(v.Out, "if nothing is running there, continue with: chorus chat --session-id %s\n", x.Thread.Thread())
	}
	return err
}

// JSON is an approval as scripts read it.
type JSON struct {
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
	Votes      []vote            `json:"answers"`
	State      approval.State    `json:"state"`
	AnsweredBy string            `json:"answeredBy,omitempty"`
	AnsweredAt time.Time         `json:"answeredAt,omitzero"`
	Note       string            `json:"note,omitempty"`
	Fields     []chat.Field      `json:"fields,omitempty"`
}

type vote struct {
	By   string    `json:"by"`
	OK   bool      `json:"approved"`
	Note string    `json:"note,omitempty"`
	At   time.Time `json:"at"`
}

// AsJSON converts an approval for scripts.
func AsJSON(shown operations.Approval) JSON {
	a := remote.Approval(shown)
	out := JSON{ID: a.ID, Kind: shown.Kind, TaskID: shown.Task, ProjectID: shown.Project, Answer: shown.Answer, SessionID: a.Thread.Thread(), Thread: a.Thread, Run: a.Run, CallID: a.Call.ID, Tool: a.Call.Name,
		Args: a.Call.Args, Actions: append([]string{}, a.Actions...), Dir: a.Dir, Risk: a.Risk, RiskWhy: a.RiskWhy, Parts: a.Parts, Rule: a.Rule, Reason: a.Reason, Again: a.Again,
		Preview: a.Preview, Bound: a.Bound, AskedBy: a.AskedBy.String(), Payer: a.Payer.String(), AskedAt: a.AskedAt, Deadline: a.Deadline,
		By: mayAnswer(a), Votes: []vote{}, State: a.State, AnsweredBy: a.AnsweredBy, AnsweredAt: a.AnsweredAt, Note: a.Note, Fields: a.Fields}
	for _, v := range a.Votes {
		out.Votes = append(out.Votes, vote{v.By.String(), v.OK, v.Note, v.At})
	}
	return out
}

func mayAnswer(a approval.Approval) string {
	return cmp.Or(a.Who, approval.DefaultWho)
}

// List shows approvals as a table.
func List(v cli.View, _ operations.ApprovalQuery, page operation.List[operations.Approval]) error {
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
		x := remote.Approval(shown)
		if v.Narrow() {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", x.ID, standing(x), x.AskedAt.Local().Format("2006-01-02 15:04"), x.Risk, What(x))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, shown.Kind, standing(x), x.AskedAt.Local().Format("2006-01-02 15:04"), until(x), named(shown.AskedByName, shown.AskedBy), x.Risk, What(x))
	}
	return w.Flush()
}

// standing is the state in a few letters. It shows a first of two approvals as "1 of 2".
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

// What describes the call in one line.
func What(a approval.Approval) string {
	words := a.Call.Name
	if len(a.Actions) > 0 {
		words = action.Words(a.Actions[0])
	}
	if len(a.Actions) > 1 {
		words += fmt.Sprintf(" and %d more", len(a.Actions)-1)
	}
	return text.Clip(text.OneLine(markdown.Visible(words)), 69)
}

// ShowTask shows an approval that a task waits for.
func ShowTask(w io.Writer, a operations.Approval) {
	for _, row := range [][2]string{{"task", a.Task}, {"project", a.Project}, {"kind", a.Kind}, {"agent", a.Agent}, {"does", a.Label}, {"why", a.Reason}, {"at", a.Preview}, {"asked by", named(a.AskedByName, a.AskedBy)},
		{"asked at", a.AskedAt.Local().Format("2006-01-02 15:04:05")}, {"who", a.Who}, {"state", a.State}, {"answer", a.Answer}} {
		if row[1] != "" {
			fmt.Fprintf(w, "%-9s %s\n", row[0], strings.ReplaceAll(markdown.Visible(row[1]), "\n", "\n          "))
		}
	}
}

// named is a person's display name. Older servers send only the key, which gives a name for people of this machine.
func named(name, key string) string {
	return cmp.Or(name, chat.PrincipalOf(key).Label())
}

// Show shows everything known about an approval that a tool call waits for.
func Show(w io.Writer, shown operations.Approval) {
	a := remote.Approval(shown)
	a.AnsweredBy = named(shown.AnsweredByName, shown.AnsweredBy)
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
	row("rule", cmp.Or(permit.RuleName(a.Rule), a.Rule))
	row("why", a.Reason)
	row("not covered", approval.Unbound(a.Bound))
	row("risk", a.Line())
	row("asked by", named(shown.AskedByName, shown.AskedBy))
	row("paid by", named(shown.PayerName, shown.Payer))
	row("asked at", a.AskedAt.Local().Format("2006-01-02 15:04:05"))
	if !a.Deadline.IsZero() {
		row("until", a.Deadline.Local().Format("2006-01-02 15:04:05"))
	}
	row("who", mayAnswer(a))
	for _, v := range shown.Votes {
		word := "no"
		if v.OK {
			word = "yes"
		}
		row(word, strings.TrimSpace(named(v.ByName, v.By)+", "+v.At.Local().Format("2006-01-02 15:04:05")+" "+v.Note))
	}
	row("state", string(a.State))
	row("", a.Ended())
	if a.Preview != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimRight(markdown.Visible(a.Preview), "\n"))
	}
	if len(a.Fields) > 0 {
		fmt.Fprintf(w, "\n%s\n", markdown.Visible(approval.HowToAnswer(a.Fields)))
	}
}
