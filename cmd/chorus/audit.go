package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
)

func (c *program) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "What was decided, by whom and by which rule", RunE: oneOf,
		Long: `Every decision about a tool call and every change of settings is a line of the audit
log: allow, ask_approved, ask_denied, deny, changed. Each line carries a hash over
itself and the line before it in its thread, and seals hold the threads together, so that
nothing can be changed unseen.`,
		Example: `  chorus audit list --decision deny
  chorus audit export --since 7d --output audit.csv
  chorus audit verify`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.ListAudit, func(v cli.View, _ operations.AuditQuery, list operation.List[operations.AuditLine]) error {
			return showAudit(v, auditPage(list))
		})
		cli.JSON(commands, operations.ListAudit, func(_ cli.View, list operation.List[operations.AuditLine]) any { return auditPage(list) })
		cli.Render(commands, operations.VerifyAudit, showVerified)
		cli.JSON(commands, operations.VerifyAudit, verifiedAsJSON)
		cli.Fails(commands, operations.VerifyAudit, func(found operations.AuditCheck) error {
			if found.Break != nil {
				return exitError(1)
			}
			return nil
		})
	})
}

// auditJSON is a line as a script reads it.
type auditJSON struct {
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
	Hash      string         `json:"hash"`
}

// auditPageJSON is one page; Next goes to --before for the page behind it, 0 ends.
type auditPageJSON struct {
	Lines []auditJSON `json:"lines"`
	Next  int64       `json:"next"`
}

func auditPage(list operation.List[operations.AuditLine]) auditPageJSON {
	page := auditPageJSON{Lines: []auditJSON{}}
	for _, l := range list.Items {
		kind, id, _ := strings.Cut(l.Who, ":")
		page.Lines = append(page.Lines, auditJSON{ID: l.Seq, At: l.At, Agent: l.Agent, Thread: chat.ThreadID(l.Thread), Run: l.Run, Call: l.Call, Action: l.Action,
			Decision: l.Decision, Rule: l.Rule, Detail: l.Detail, Hash: l.Hash, Principal: chat.Principal{Kind: chat.PrincipalKind(kind), ID: id}})
	}
	if list.Next != "" && len(page.Lines) > 0 {
		page.Next = page.Lines[len(page.Lines)-1].ID
	}
	return page
}

func showAudit(v cli.View, page auditPageJSON) error {
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
		at, by := l.At.Local().Format("2006-01-02 15:04:05"), cmp.Or(l.Principal.String(), "–")
		action, rule := clipLine(l.Action, 60), cmp.Or(permit.RuleName(l.Rule), clipLine(l.Rule, 40), "–")
		if v.Narrow() {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", l.ID, at, by, l.Decision, action, rule)
			continue
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, at, by, cmp.Or(l.Agent, "–"), l.Decision, action, rule, clipLine(l.Detail, 60))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.Next > 0 {
		fmt.Fprintf(v.Err, "chorus: there are older lines: --before %d\n", page.Next)
	}
	return nil
}

// verifyJSON is the outcome as a script reads it.
type verifyJSON struct {
	OK     bool                   `json:"ok"`
	Lines  int64                  `json:"lines"`
	Chains int64                  `json:"chains"`
	Before int64                  `json:"beforeChain"`
	Head   string                 `json:"head"`
	HeadID int64                  `json:"headSeal"`
	Break  *operations.AuditBreak `json:"break,omitempty"`
}

func verifiedAsJSON(_ cli.View, found operations.AuditCheck) any {
	return verifyJSON{found.OK, found.Lines, found.Chains, found.Before, found.Head, found.HeadSeal, found.Break}
}

func showVerified(v cli.View, _ operations.VerifyRequest, found operations.AuditCheck) error {
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
		fmt.Fprintf(w, "%d of them are from before the chain and covered together\n", found.Before)
	}
	_, err := fmt.Fprintf(w, "head  %s\n", found.Head)
	return err
}

// progress tells once a second how far it is; whoever is done sooner reads nothing.
func progress(w io.Writer, now func() time.Time) func(done, all int64) {
	last := now()
	return func(done, all int64) {
		if t := now(); done < all && t.Sub(last) >= time.Second {
			last = t
			fmt.Fprintf(w, "chorus: %d of %d lines\n", done, all)
		}
	}
}
