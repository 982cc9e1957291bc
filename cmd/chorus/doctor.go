package main

import (
	"io"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/spinner"
	"chorus/internal/doctor"
	"chorus/internal/doctor/checks"
)

func (c *program) doctorCommand() *cobra.Command {
	var e checks.Examination
	fix := false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "doctor", Short: "Check everything, and say how to fix problems", Args: exactly(0),
		Long: `Checks the program, the home folder, the database, the configuration, the audit log, the
keys of the vendors, the programs that agents use, MCP servers, sandboxes, budgets and
approvals. Under each problem it says how to fix it.

It also works when nothing else does: with a broken configuration, a damaged or newer
database, or a home that is unreadable or missing. It changes nothing without --fix, never
shows a key, and takes a few seconds at most.

Exits with 1 if something is broken; warnings and notes are only shown.`,
		Example: `  chorus doctor
  chorus doctor --online       ask the vendors whether they accept the keys
  chorus doctor --fix          also repair a lost or damaged database, and make the home private
  chorus doctor --json | jq '.sections[].findings[] | select(.mark == "broken")'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := checks.Options{Env: c.getenv, Home: c.home}
			e.Version = version
			wait := spinner.New(c.console, c.json)
			var fixed []doctor.Finding
			if fix {
				fixed = checks.Fix(cmd.Context(), o, e.Thorough)
			}
			e.Heard = wait.Show
			report := checks.Examine(cmd.Context(), o, e)
			wait.End()
			report.Before("fixed", fixed)
			if !report.OK {
				c.exit = 1
			}
			if c.json {
				return c.printJSON(report)
			}
			_, err := io.WriteString(c.styled(), report.Text(doctor.Style{Look: c.look(), Width: c.width()}))
			return err
		},
	})
	cmd.Flags().BoolVar(&e.Online, "online", false, "ask the vendors whether they accept the keys")
	cmd.Flags().BoolVar(&e.Thorough, "thorough", false, "read all of a big database, a long audit log, and every attachment")
	cmd.Flags().BoolVar(&fix, "fix", false, "fix what can be fixed safely: repair a lost, damaged or older database, make the home private, remove unused bytes")
	cmd.Flags().BoolVar(&fix, "mend", false, "")
	_ = cmd.Flags().MarkHidden("mend") // the flag's former name
	return cmd
}
