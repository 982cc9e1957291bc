package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"chorus/internal/datadir"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/usage"
)

func (c *program) migrateCommand() *cobra.Command {
	var o store.MigrateOptions
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database to this version's schema", Args: exactly(0),
		Long: `Brings the database to this version's schema. Every command does that by itself;
this one shows what would be done (--dry-run) and takes steps back (--down N), which
drops what the steps had made; a copy of the database is kept beside it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Down < 0 {
				return &usage.Error{Err: fmt.Errorf("--down takes a number of steps")}
			}
			dir := c.home
			if dir == "" {
				var err error
				if dir, err = datadir.Find(c.getenv); err != nil {
					return err
				}
			}
			at, err := settings.DatabaseIn(c.getenv, dir)
			if err != nil {
				return err
			}
			var report store.MigrateReport
			if at.OnServer() {
				report, err = store.MigrateServer(cmd.Context(), string(at.URL), o)
			} else {
				report, err = store.Migrate(cmd.Context(), at.Path, o)
			}
			if err != nil {
				return err
			}
			c.showMigration(report, o.DryRun)
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
	cmd.Flags().IntVar(&o.Down, "down", 0, "take so many steps back")
	return cmd
}

func (c *program) showMigration(r store.MigrateReport, dry bool) {
	if len(r.Steps) == 0 {
		fmt.Fprintf(c.out(), "the database is at version %d; nothing to do\n", r.From)
		return
	}
	verb := "applied"
	switch {
	case dry && r.Down:
		verb = "would take back"
	case dry:
		verb = "would apply"
	case r.Down:
		verb = "took back"
	}
	for _, step := range r.Steps {
		fmt.Fprintf(c.out(), "%s %d %s\n", verb, step.Version, step.Name)
	}
	fmt.Fprintf(c.out(), "version %d → %d\n", r.From, r.To)
	if r.Copy != "" {
		fmt.Fprintf(c.out(), "the database as it was: %s\n", r.Copy)
	}
}
