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
		Use: "doctor", Short: "Check everything and say how to fix it", Args: exactly(0),
		Long: `Looks at the program, the home folder, the database, the configuration, the audit
log, the keys of the vendors, the programs that agents use, MCP servers, sandboxes,
budgets and approvals. Each line that is not well is followed by what to do.

It works also where nothing else does: with a broken configuration, a damaged or newer
database, a home that cannot be read or is not there yet. It changes nothing unless
--fix is given, never shows a key, and takes a few seconds at most.

Exit 1 if something is broken; warnings and notes are only shown.`,
		Example: `  chorus doctor
  chorus doctor --online       ask the vendors whether the keys are accepted
  chorus doctor --fix          also make a lost or damaged database usable again, and close the home off
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
	cmd.Flags().BoolVar(&e.Online, "online", false, "ask the vendors whether the keys are accepted")
	cmd.Flags().BoolVar(&e.Thorough, "thorough", false, "read all of a big database, a long audit log, and every attachment")
	cmd.Flags().BoolVar(&fix, "fix", false, "do what can be done safely: make a lost, damaged or older database usable again, close the home off, remove unused bytes")
	cmd.Flags().BoolVar(&fix, "mend", false, "")
	_ = cmd.Flags().MarkHidden("mend") // as it was called before
	return cmd
}
