// Package auditview shows audit log lines and verification results, as tables for people and as JSON for scripts.
package auditview

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
)

// line is an audit log line in JSON.
type line struct {
	ID        int64          `json:"id"`
	At        time.Time      `json:"at"`
	Agent     string         `json:"agent"`
	Thread    chat.ThreadID  `json:"thread"`
	Run       string         `json:"run"`
	Call      string         `json:"call"`
	Principal chat.Principal `json:"principal"`
	Action    string         `json:"action"`
	Decision  string         `json:"decision"`
	Rule      string         `json:"rule"`
	Detail    string         `json:"detail"`
	Words     string         `json:"words"` // the detail in plain words
	Hash      string         `json:"hash"`
	by        string         // display name of the principal
}

// Page is one page of lines. Pass Next to --before to get the following page; 0 means there is none.
type Page struct {
	Lines []line `json:"lines"`
	Next  int64  `json:"next"`
}

// PageOf converts a list to a Page.
func PageOf(list operation.List[operations.AuditLine]) Page {
	page := Page{Lines: []line{}}
	for _, l := range list.Items {
		who := chat.PrincipalOf(l.Who)
		page.Lines = append(page.Lines, line{ID: l.Seq, At: l.At, Agent: l.Agent, Thread: chat.ThreadID(l.Thread), Run: l.Run, Call: l.Call, Action: l.Action,
			Decision: l.Decision, Rule: l.Rule, Detail: l.Detail, Words: l.Words, Hash: l.Hash, Principal: who, by: cmp.Or(l.WhoName, who.Label(), "–")})
	}
	if list.Next != "" && len(page.Lines) > 0 {
		page.Next = page.Lines[len(page.Lines)-1].ID
	}
	return page
}

// Show prints a page as a table.
func Show(v cli.View, page Page) error {
	if len(page.Lines) == 0 {
		_, err := fmt.Fprintln(v.Out, operations.ListAudit.Empty)
		return err
	}
	w := v.Columns()
	if v.Narrow() {
		fmt.Fprintln(w, "LINE\tAT\tBY\tDECISION\tACTION\tRULE")
	} else {
		fmt.Fprintln(w, "LINE\tAT\tBY\tAGENT\tDECISION\tACTION\tRULE\tDETAIL")
	}
	for _, l := range page.Lines {
		at, by := l.At.Local().Format("2006-01-02 15:04:05"), l.by
		action, rule := cli.ClipLine(strings.TrimPrefix(l.Action, "tool:"), 60), cmp.Or(permit.RuleName(l.Rule), cli.ClipLine(l.Rule, 40), "–")
		if v.Narrow() {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", l.ID, at, by, operations.DecisionText(l.Decision), action, rule)
			continue
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, at, by, cmp.Or(l.Agent, "–"), operations.DecisionText(l.Decision), action, rule, cli.ClipLine(cmp.Or(l.Words, l.Detail), 60))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.Next > 0 {
		fmt.Fprintf(v.Err, "chorus: there are older lines; see them with --before %d\n", page.Next)
	}
	return nil
}

// verified is the result of a verification in JSON.
type verified struct {
	OK     bool                   `json:"ok"`
	Lines  int64                  `json:"lines"`
	Chains int64                  `json:"chains"`
	Before int64                  `json:"beforeChain"`
	Head   string                 `json:"head"`
	HeadID int64                  `json:"headSeal"`
	Break  *operations.AuditBreak `json:"break,omitempty"`
}

// VerifiedJSON converts the result of a verification for scripts.
func VerifiedJSON(_ cli.View, found operations.AuditCheck) any {
	return verified{found.OK, found.Lines, found.Chains, found.Before, found.Head, found.HeadSeal, found.Break}
}

// ShowVerified prints the result of a verification.
func ShowVerified(v cli.View, _ operations.VerifyRequest, found operations.AuditCheck) error {
	w := v.Out
	if b := found.Break; b != nil {
		_, err := fmt.Fprintf(w, "BROKEN  %s: %s\n", b.What, b.Text)
		return err
	}
	if found.Lines == 0 {
		_, err := fmt.Fprintln(w, "the audit log is empty")
		return err
	}
	fmt.Fprintf(w, "%s, all as written\n", text.Count(int(found.Lines), "line"))
	if found.Before > 0 {
		fmt.Fprintf(w, "%d of them are older than the chain and are covered together\n", found.Before)
	}
	_, err := fmt.Fprintf(w, "head  %s\n", found.Head)
	return err
}
