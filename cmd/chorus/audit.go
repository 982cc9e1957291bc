package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/store"
	"chorus/internal/usage"
)

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "What was decided, by whom and by which rule", RunE: oneOf,
		Long: `Every decision about a tool call and every change of settings is a line of the audit
log: allow, ask_approved, ask_denied, deny, changed. Each line carries a hash over
itself and the line before, so that nothing can be changed unseen.`,
		Example: `  chorus audit list --decision deny
  chorus audit verify`,
	}
	cmd.AddCommand(c.auditList(), c.auditVerify())
	return c.serverFlags(cmd)
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

func (c *cli) auditList() *cobra.Command {
	var f store.AuditFilter
	var thread, since, until string
	cmd := c.jsonFlag(&cobra.Command{
		Use: "list", Short: "List decisions and changes, the newest first", Args: exactly(0),
		Example: `  chorus audit list --agent frontend --since 24h
  chorus audit list --decision deny --since 2026-01-01 --until 2026-02-01 --json`,
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		now := time.Now()
		if f.Since, err = moment(since, now); err != nil {
			return &usage.Error{Err: fmt.Errorf("--since: %w", err)}
		}
		if f.Until, err = moment(until, now); err != nil {
			return &usage.Error{Err: fmt.Errorf("--until: %w", err)}
		}
		if c.remote() {
			return c.farAudit(cmd.Context(), f, thread)
		}
		return c.with(cmd.Context(), func(a *app.App) error {
			if thread != "" {
				row, err := a.Service.FindThread(cmd.Context(), thread)
				if err != nil {
					return err
				}
				f.Thread = row.ID
			}
			asked := f
			asked.Limit++ // one more tells whether there are older ones
			lines, err := a.DB.AuditLog(cmd.Context(), asked)
			if err != nil {
				return err
			}
			page := auditPageJSON{Lines: []auditJSON{}}
			for i, l := range lines {
				if i == f.Limit {
					page.Next = page.Lines[i-1].ID
					break
				}
				page.Lines = append(page.Lines, auditJSON{l.ID, l.At, l.Agent, l.Thread, l.Run, l.Call, l.Principal, l.Action, l.Decision, l.Rule, l.Detail, l.Hash})
			}
			return c.tellAudit(page)
		})
	}
	cmd.Flags().StringVar(&f.Agent, "agent", "", "only this agent's")
	cmd.Flags().StringVar(&thread, "thread", "", "only this thread's (a unique beginning of the id is enough)")
	cmd.Flags().StringVar(&f.Run, "run", "", "only this run's")
	cmd.Flags().StringVar(&f.Principal, "principal", "", "only what this one asked for, for example local:ada")
	cmd.Flags().StringVar(&f.Decision, "decision", "", "allow, ask_approved, ask_denied, deny or changed")
	cmd.Flags().StringVar(&since, "since", "", "not older: a date, a time or a duration such as 24h")
	cmd.Flags().StringVar(&until, "until", "", "older than this, likewise")
	cmd.Flags().Int64Var(&f.Before, "before", 0, "only lines with a smaller number: the next page")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "at most so many")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if f.Limit < 1 {
			return &usage.Error{Err: fmt.Errorf("--limit %d: at least 1", f.Limit)}
		}
		return nil
	}
	return cmd
}

func (c *cli) tellAudit(page auditPageJSON) error {
	if c.json {
		return c.printJSON(page)
	}
	if len(page.Lines) == 0 {
		fmt.Fprintln(c.out(), "no matching audit entries")
		return nil
	}
	w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "LINE\tAT\tBY\tAGENT\tDECISION\tACTION\tRULE\tDETAIL")
	for _, l := range page.Lines {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, l.At.Local().Format("2006-01-02 15:04:05"), orElse(l.Principal.String(), "–"),
			orElse(l.Agent, "–"), l.Decision, clipLine(l.Action, 60), orElse(clipLine(l.Rule, 40), "–"), clipLine(l.Detail, 60))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.Next > 0 {
		c.warn(fmt.Sprintf("there are older lines: --before %d", page.Next))
	}
	return nil
}

// moment reads a point in time: a date or time of this place, RFC 3339, or how long ago.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("invalid time %q; write 2026-01-31, 2026-01-31T15:04 or 24h", text)
}

// verifyJSON is the outcome as a script reads it.
type verifyJSON struct {
	OK     bool       `json:"ok"`
	Lines  int64      `json:"lines"`
	Before int64      `json:"beforeChain"`
	Head   string     `json:"head"`
	HeadID int64      `json:"headLine"`
	Break  *breakJSON `json:"break,omitempty"`
}

type breakJSON struct {
	Line int64        `json:"line"`
	What store.Damage `json:"what"`
	Text string       `json:"text"`
}

func (c *cli) auditVerify() *cobra.Command {
	since := ""
	cmd := c.jsonFlag(&cobra.Command{
		Use: "verify", Short: "Say whether the audit log is what was written", Args: exactly(0),
		Long: `Walks the chain of hashes and says the first line that was changed, removed or put in.
Exit 1 if there is one.

Somebody who may write the file can cut the log off, or write all of it anew. Keep the
head that is printed where they cannot write, and give it to --since the next time: the
line it names must still be there, and everything behind it is checked.`,
		Example: `  chorus audit verify
  chorus audit verify --since 5f0c…`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.remote() {
				return c.farVerify(cmd.Context(), since)
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				found, err := a.DB.VerifyAudit(cmd.Context(), since, progress(c.console.Err, time.Now))
				if err != nil {
					return err
				}
				return c.tellVerified(found)
			})
		},
	})
	cmd.Flags().StringVar(&since, "since", "", "begin at the line with this hash: a head that was kept")
	return cmd
}

// tellVerified says what a look at the log found; a break is a failure.
func (c *cli) tellVerified(found store.AuditCheck) error {
	tell := c.showVerified
	if c.json {
		tell = func(found store.AuditCheck) error { return c.printJSON(verified(found)) }
	}
	err := tell(found)
	if err == nil && found.Break != nil {
		err = exitError(1)
	}
	return err
}

func verified(found store.AuditCheck) verifyJSON {
	out := verifyJSON{OK: found.Break == nil, Lines: found.Lines, Before: found.Before, Head: found.Head, HeadID: found.HeadID}
	if b := found.Break; b != nil {
		out.Break = &breakJSON{b.ID, b.What, b.Text}
	}
	return out
}

func (c *cli) showVerified(found store.AuditCheck) error {
	w := c.out()
	if b := found.Break; b != nil {
		fmt.Fprintf(w, "BROKEN  %s: %s\n", b.What, b.Text)
		if found.HeadID > 0 {
			fmt.Fprintf(w, "intact up to line %d\nhead  %s\n", found.HeadID, found.Head)
		}
		return nil
	}
	if found.Lines == 0 {
		_, err := fmt.Fprintln(w, "the audit log is empty")
		return err
	}
	fmt.Fprintf(w, "%s, all as written\n", howMany(int(found.Lines), "line"))
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
