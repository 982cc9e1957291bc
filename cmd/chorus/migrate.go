package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/blobstorage"
	"chorus/internal/database"
	"chorus/internal/datadir"
	"chorus/internal/doctor/checks"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/store/dbcopy"
	"chorus/internal/usage"
)

func (c *program) migrateCommand() *cobra.Command {
	var o database.MigrateOptions
	var from, to, blobsTo string
	cmd := &cobra.Command{
		Use: "migrate", Short: "Update the database schema, or move the database elsewhere", Args: exactly(0),
		Long: `Brings the database to this version's schema. Every command does that by itself; this one
shows what would be done (--dry-run) or reverts steps (--down N). Reverting drops what the
steps created; a copy of the database is kept next to it.

With --to it copies everything into a new database, from a file to PostgreSQL or back, then
reads it again and compares before the move counts. Stop every chorus first. The old
database stays unchanged; set databaseUrl to the new one afterwards. Put a password in
PGPASSWORD or ~/.pgpass instead of the URL.

With --blobs-to it moves attachments and long results over 64 KB to S3-compatible storage, to
a folder, or back into the database (for a file: next to it). Each is checked by its hash when
it is read, and again after it is written. If interrupted, start it again to continue. Set
blobUrl to the new place afterwards.`,
		Example: `  chorus migrate --dry-run
  chorus migrate --to postgres://chorus@db.example.org/chorus
  chorus migrate --from postgres://chorus@db.example.org/chorus --to sqlite:back.db
  chorus migrate --blobs-to 's3://my-bucket/chorus?region=eu-central-1'
  chorus migrate --blobs-to database`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Down < 0 {
				return &usage.Error{Err: fmt.Errorf("--down takes a number of steps")}
			}
			if blobsTo != "" {
				return c.moveBlobs(cmd.Context(), blobsTo)
			}
			if to != "" || from != "" {
				return c.moveDatabase(cmd.Context(), from, to)
			}
			dir, err := c.homeFolder()
			if err != nil {
				return err
			}
			at, err := settings.DatabaseIn(c.getenv, dir)
			if err != nil {
				return err
			}
			var report database.MigrateReport
			if at.OnServer() {
				report, err = store.MigrateServer(cmd.Context(), string(at.URL), o)
			} else {
				report, err = store.Migrate(cmd.Context(), at.Path, o)
			}
			if err != nil {
				return err
			}
			return c.showMigration(report, o.DryRun)
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().IntVar(&o.Down, "down", 0, "revert this many steps")
	cmd.Flags().StringVar(&from, "from", "", "database to move: sqlite:PATH or postgres://… (default: the one of this home)")
	cmd.Flags().StringVar(&to, "to", "", "where to move it: postgres://… or sqlite:PATH; it must be empty")
	cmd.Flags().StringVar(&blobsTo, "blobs-to", "", "where to move attachments: s3://BUCKET/PREFIX?…, file:///PATH, or database")
	for _, other := range []string{"to", "from", "dry-run", "down"} {
		cmd.MarkFlagsMutuallyExclusive("blobs-to", other)
	}
	cmd.MarkFlagsMutuallyExclusive("to", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("to", "down")
	return c.jsonFlag(cmd)
}

// moveDatabase copies everything into a new database. An empty from means the home's own.
func (c *program) moveDatabase(ctx context.Context, from, to string) error {
	if to == "" {
		return &usage.Error{Err: errors.New("--from needs --to, the place to move it to: postgres://… or sqlite:PATH")}
	}
	dir, err := c.homeFolder()
	if err != nil {
		return err
	}
	h, err := datadir.Open(dir)
	if err != nil {
		return err
	}
	old, err := settings.Elsewhere{DatabaseURL: from}.In(c.getenv, dir)
	if err != nil {
		return err
	}
	made, err := settings.Elsewhere{DatabaseURL: to}.In(c.getenv, dir)
	if err != nil {
		return err
	}
	if who := checks.Users(ctx, checks.Options{Env: c.getenv, Home: dir}); len(who) > 0 {
		return fmt.Errorf("%s is in use by %s; stop it first", dir, strings.Join(who, ", "))
	}
	tables, err := dbcopy.Move(ctx, old.Options(h), made.Options(h), func(t dbcopy.MovedTable) {
		if !c.json && t.Rows > 0 {
			fmt.Fprintf(c.out(), "%10d  %s\n", t.Rows, t.Name)
		}
	})
	if errors.Is(err, dbcopy.ErrNotEmpty) {
		return fmt.Errorf("%s is not empty; choose a new, empty database", made)
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
	fmt.Fprintf(c.out(), "moved %d rows from %s to %s; both were read back and are identical\n", rows, old, made)
	fmt.Fprintf(c.out(), "to use it, set databaseUrl in %s, or set CHORUS_DATABASE_URL\n", filepath.Join(dir, "config", "shared.yaml"))
	return nil
}

// moveBlobs moves attachments and long results. "database" is where they are without blobUrl.
func (c *program) moveBlobs(ctx context.Context, to string) (err error) {
	dir, err := c.homeFolder()
	if err != nil {
		return err
	}
	h, err := datadir.Open(dir)
	if err != nil {
		return err
	}
	at, err := settings.DatabaseIn(c.getenv, dir)
	if err != nil {
		return err
	}
	var storage blobstorage.Storage
	name := "the database"
	if to != "database" {
		made, err := settings.Elsewhere{BlobURL: to}.In(c.getenv, dir)
		if err != nil {
			return &usage.Error{Err: err}
		}
		storage, name = made.Blobs, made.Blobs.Name()
		defer func() { err = errors.Join(err, storage.Close()) }()
		if err := storage.Check(ctx); err != nil {
			return err
		}
	}
	if who := checks.Users(ctx, checks.Options{Env: c.getenv, Home: dir}); len(who) > 0 {
		return fmt.Errorf("%s is in use by %s; stop it first", dir, strings.Join(who, ", "))
	}
	db, err := store.Open(ctx, at.Options(h))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	percent := c.percent()
	done, err := dbcopy.MoveBlobs(ctx, db, storage, func(done, all int) { percent(int64(done), int64(all)) })
	if err != nil {
		return err
	}
	for _, hash := range done.Lost {
		c.warn("attachment " + hash + " was already lost; see `chorus doctor --thorough`")
	}
	if c.json {
		return c.printJSON(map[string]any{"to": name, "moved": done.Moved, "bytes": done.Bytes, "lost": done.Lost})
	}
	fmt.Fprintf(c.out(), "moved %d attachments and long results with %d bytes to %s; all were read back and are identical\n", done.Moved, done.Bytes, name)
	if storage == nil {
		fmt.Fprintln(c.out(), "to use it, remove blobUrl from the configuration")
	} else {
		fmt.Fprintf(c.out(), "to use it, set blobUrl: %s in %s, or set CHORUS_BLOB_URL, on every node\n", to, filepath.Join(dir, "config", "shared.yaml"))
	}
	return nil
}

func (c *program) showMigration(r database.MigrateReport, dry bool) error {
	if c.json {
		type step struct {
			Version int    `json:"version"`
			Name    string `json:"name"`
		}
		steps := []step{}
		for _, s := range r.Steps {
			steps = append(steps, step{s.Version, s.Name})
		}
		return c.printJSON(map[string]any{"from": r.From, "to": r.To, "steps": steps, "down": r.Down, "dryRun": dry, "copy": r.Copy})
	}
	if len(r.Steps) == 0 {
		fmt.Fprintf(c.out(), "the database is at version %d; nothing to do\n", r.From)
		return nil
	}
	verb := "applied"
	switch {
	case dry && r.Down:
		verb = "would revert"
	case dry:
		verb = "would apply"
	case r.Down:
		verb = "reverted"
	}
	for _, step := range r.Steps {
		fmt.Fprintf(c.out(), "%s %d %s\n", verb, step.Version, step.Name)
	}
	fmt.Fprintf(c.out(), "version %d → %d\n", r.From, r.To)
	if r.Copy != "" {
		fmt.Fprintf(c.out(), "copy of the old database: %s\n", r.Copy)
	}
	return nil
}

// homeFolder is the path of the home, whether it exists or not.
func (c *program) homeFolder() (string, error) {
	if c.home != "" {
		return c.home, nil
	}
	return datadir.Find(c.getenv)
}
