package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/doctor/checks"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/usage"
)

func (c *program) migrateCommand() *cobra.Command {
	var o store.MigrateOptions
	var from, to string
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database to this version's schema, or move it to another place", Args: exactly(0),
		Long: `Brings the database to this version's schema. Every command does that by itself;
this one shows what would be done (--dry-run) and takes steps back (--down N), which
drops what the steps had made; a copy of the database is kept beside it.

With --to everything is copied into a new database, from a file to PostgreSQL or back, and
read again and compared before it counts. Stop every chorus first. The old database stays
as it is; name the new one by databaseUrl afterwards. A password can stand in PGPASSWORD or
in ~/.pgpass instead of the URL.`,
		Example: `  chorus migrate --dry-run
  chorus migrate --to postgres://chorus@db.example.org/chorus
  chorus migrate --from postgres://chorus@db.example.org/chorus --to sqlite:back.db`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Down < 0 {
				return &usage.Error{Err: fmt.Errorf("--down takes a number of steps")}
			}
			if to != "" || from != "" {
				return c.moveDatabase(cmd.Context(), from, to)
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
	cmd.Flags().StringVar(&from, "from", "", "the database to move: sqlite:PATH or postgres://… (default: the one of this home)")
	cmd.Flags().StringVar(&to, "to", "", "where to move it: postgres://… or sqlite:PATH; it must be empty")
	cmd.MarkFlagsMutuallyExclusive("to", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("to", "down")
	return c.jsonFlag(cmd)
}

// moveDatabase copies everything into a new database; an empty from is the home's own.
func (c *program) moveDatabase(ctx context.Context, from, to string) error {
	if to == "" {
		return &usage.Error{Err: errors.New("--from says what is moved; --to must say where: postgres://… or sqlite:PATH")}
	}
	dir := c.home
	if dir == "" {
		var err error
		if dir, err = datadir.Find(c.getenv); err != nil {
			return err
		}
	}
	h, err := datadir.Open(dir)
	if err != nil {
		return err
	}
	old, err := settings.DatabaseIn(c.getenv, dir)
	if from != "" {
		old, err = settings.DatabaseOf(h, &config.Bot{DatabaseURL: config.Secret(from)})
	}
	if err != nil {
		return err
	}
	made, err := settings.DatabaseOf(h, &config.Bot{DatabaseURL: config.Secret(to)})
	if err != nil {
		return err
	}
	if who := checks.Users(ctx, checks.Options{Env: c.getenv, Home: dir}); len(who) > 0 {
		return fmt.Errorf("%s is in use by %s: stop it first", dir, strings.Join(who, ", "))
	}
	tables, err := store.Move(ctx, old.Options(h), made.Options(h), func(t store.MovedTable) {
		if !c.json && t.Rows > 0 {
			fmt.Fprintf(c.out(), "%10d  %s\n", t.Rows, t.Name)
		}
	})
	if errors.Is(err, store.ErrNotEmpty) {
		return fmt.Errorf("%s already holds something; name a new, empty database", made)
	}
	if err != nil {
		return err
	}
	rows := int64(0)
	for _, t := range tables {
		rows += t.Rows
	}
	if c.json {
		return c.printJSON(map[string]any{"from": old.String(), "to": made.String(), "rows": rows, "tables": tables})
	}
	fmt.Fprintf(c.out(), "moved %d rows from %s to %s; both were read and are the same\n", rows, old, made)
	fmt.Fprintf(c.out(), "to use it, write databaseUrl into %s, or set CHORUS_DATABASE_URL\n", filepath.Join(dir, "config", "shared.yaml"))
	return nil
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
