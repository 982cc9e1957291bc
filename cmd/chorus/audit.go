package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/auditview"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

func (c *program) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Show what was decided, by whom and by which rule", RunE: onlySubcommands,
		Long: `Every decision about a tool call and every change of settings is a line of the audit log:
allow, ask_approved, ask_denied, deny or changed. Each line carries a hash of itself and
the previous line of its thread, and seals tie the threads together, so nothing can be
changed unnoticed.`,
		Example: `  chorus audit list --decision deny
  chorus audit export --since 7d --output audit.csv
  chorus audit verify`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Render(commands, operations.ListAudit, func(v cli.View, _ operations.AuditQuery, list operation.List[operations.AuditLine]) error {
			return auditview.Show(v, auditview.PageOf(list))
		})
		cli.JSON(commands, operations.ListAudit, func(_ cli.View, list operation.List[operations.AuditLine]) any { return auditview.PageOf(list) })
		cli.Render(commands, operations.VerifyAudit, auditview.ShowVerified)
		cli.JSON(commands, operations.VerifyAudit, auditview.VerifiedJSON)
		cli.Fails(commands, operations.VerifyAudit, func(found operations.AuditCheck) error {
			if found.Break != nil {
				return exitError(1)
			}
			return nil
		})
	})
}

// progress reports progress at most once a second. Fast commands print nothing.
func progress(w io.Writer, now func() time.Time) func(done, all int64) {
	last := now()
	return func(done, all int64) {
		if t := now(); done < all && t.Sub(last) >= time.Second {
			last = t
			fmt.Fprintf(w, "chorus: %d of %d lines\n", done, all)
		}
	}
}
