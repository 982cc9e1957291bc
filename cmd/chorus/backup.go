package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/backup"
	"chorus/internal/database"
	"chorus/internal/datadir"
	"chorus/internal/doctor"
	"chorus/internal/doctor/checks"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/store/dbcopy"
	"chorus/internal/usage"
)

func (c *program) backupCommand() *cobra.Command {
	force := false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "backup FILE", Short: "Back up everything into one file, while it is in use", Args: exactly(1),
		Long: `Writes the whole home into one file: a consistent copy of the database, the attachments and
long results that conversations refer to (also those in a bucket), the agents, the
configuration and the keys. Servers and chats keep running. A name that ends in .gz or .tgz
is compressed; - is standard output.

Caches, logs, the search index and the homes of sandboxed commands are left out, since they
can be rebuilt. So is everything outside the home, such as projects.

The file contains the owner's token and the keys of the home. Store it as safely as passwords.`,
		Example: `  chorus backup chorus-backup.tar.gz
  chorus backup - | ssh backup@example.org 'cat > chorus.tar'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(a *app.App) error { return c.backUp(cmd.Context(), a, args[0], force) })
		},
	})
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return cmd
}

func (c *program) backUp(ctx context.Context, a *app.App, name string, force bool) error {
	from := backup.Source{Dir: a.Home.Dir(), Blobs: a.Home.Blobs(), DB: dbcopy.Source{DB: a.DB}, Copies: dbcopy.Copies{}, Version: version}
	progress := c.percent()
	if name == "-" {
		_, err := backup.Write(ctx, c.console.Out, from, progress)
		return err
	}
	name, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(name); err == nil && !force {
		return &usage.Error{Err: fmt.Errorf("%s already exists; choose another name, or use --force", name)}
	}
	if rel, err := filepath.Rel(a.Home.Dir(), name); err == nil && filepath.IsLocal(rel) {
		return &usage.Error{Err: fmt.Errorf("%s is inside the home; put the backup somewhere else", name)}
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".part-*") // readable by its owner only
	if err != nil {
		return err
	}
	made, err := writeBackup(ctx, f, compressed(name), from, progress)
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	for _, hash := range made.Lost {
		c.warn("attachment " + hash + " is not in the backup because the home has lost it; see `chorus doctor --thorough`")
	}
	size := int64(0)
	if info, err := os.Stat(name); err == nil {
		size = info.Size()
	}
	if c.json {
		return c.printJSON(map[string]any{"file": name, "bytes": size, "files": len(made.Files), "lost": nonNil(made.Lost), "at": made.At})
	}
	_, err = fmt.Fprintf(c.out(), "%s: %d files, %d bytes\n", name, len(made.Files), size)
	return err
}

// percent reports the progress of a long copy at most once a second.
func (c *program) percent() func(done, all int64) {
	last := time.Now()
	return func(done, all int64) {
		if now := time.Now(); all > 0 && done < all && now.Sub(last) >= time.Second {
			last = now
			c.warn(fmt.Sprintf("%d %% of %d MB", done*100/all, all>>20))
		}
	}
}

// writeBackup writes a backup to a file.
func writeBackup(ctx context.Context, f *os.File, compress bool, from backup.Source, progress func(done, all int64)) (made backup.Manifest, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	var to io.Writer = f
	finish := func() error { return nil }
	if compress {
		z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
		if err != nil {
			return made, err
		}
		to, finish = z, z.Close
	}
	if made, err = backup.Write(ctx, to, from, progress); err != nil {
		return made, err
	}
	if err := finish(); err != nil {
		return made, err
	}
	return made, f.Sync()
}

func compressed(name string) bool {
	return strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".tgz")
}

func (c *program) restoreCommand() *cobra.Command {
	var t backup.Target
	goOn := false
	cmd := c.jsonFlag(&cobra.Command{
		Use: "restore FILE", Short: "Replace the home with a backup", Args: exactly(1),
		Long: `Reads a backup, checks every file in it, and only then replaces the home. A truncated or
damaged backup changes nothing; - is standard input.

Stop every chorus that uses this home first. An existing home is only replaced with
--replace, and is kept in a folder before-restore-… in the new one.

Runs that were active when the backup was made are stopped, because much of their work may
have been done since. With --resume they continue instead, for a move to another machine.`,
		Example: `  chorus restore chorus-backup.tar.gz
  chorus restore --replace chorus-backup.tar.gz`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.restore(cmd.Context(), args[0], t, goOn) },
	})
	cmd.Flags().BoolVar(&t.Replace, "replace", false, "move the existing home aside")
	cmd.Flags().BoolVar(&goOn, "resume", false, "continue runs that were active")
	return cmd
}

func (c *program) restore(ctx context.Context, name string, t backup.Target, goOn bool) (err error) {
	if t.Dir, err = c.homeFolder(); err != nil {
		return err
	}
	if t.Dir, err = filepath.Abs(t.Dir); err != nil {
		return err
	}
	t.Copies = dbcopy.Copies{}
	o := checks.Options{Env: c.getenv, Home: t.Dir}
	if who := checks.Users(ctx, o); len(who) > 0 {
		return fmt.Errorf("%s is in use by %s; stop it first", t.Dir, strings.Join(who, ", "))
	}
	from, closeFile, err := c.openBackup(name)
	if err != nil {
		return err
	}
	defer closeFile()
	if t.File = name; name != "-" {
		if t.File, err = filepath.Abs(name); err != nil {
			return err
		}
	}
	done, err := backup.Restore(ctx, from, t)
	if errors.Is(err, backup.ErrInhabited) {
		return &usage.Error{Err: fmt.Errorf("%w; move it aside with `chorus restore --replace FILE`", err)}
	}
	if err != nil {
		return err
	}
	if err := c.restoreToServer(ctx, t.Dir, done.ID); err != nil {
		return err
	}
	after := checks.AfterRestore(ctx, o, goOn)
	if err := backup.Finish(t.Dir); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"home": t.Dir, "files": len(done.Files), "at": done.At, "aside": done.Aside, "after": nonNil(after)})
	}
	fmt.Fprintf(c.out(), "%s is as it was at %s: %d files\n", t.Dir, done.At.Local().Format("2006-01-02 15:04:05"), len(done.Files))
	if done.Aside != "" {
		fmt.Fprintf(c.out(), "what was there before is in %s\n", done.Aside)
	}
	for _, f := range after {
		fmt.Fprintf(c.out(), "%s: %s\n", f.Name, f.Detail)
		if f.Mark == doctor.Broken {
			c.exit = 1
		}
	}
	if at, err := settings.DatabaseIn(c.getenv, t.Dir); err == nil && !at.OnServer() && at.Path != filepath.Join(t.Dir, "chorus.db") {
		c.warn("the configuration puts the database at " + at.String() + "; the one of the backup is in " + filepath.Join(t.Dir, "chorus.db"))
	}
	if at, err := settings.DatabaseIn(c.getenv, t.Dir); err == nil && !at.OnServer() && at.Blobs != nil {
		c.warn("the backup's attachments are in " + filepath.Join(t.Dir, "blobs") + "; `chorus migrate --blobs-to URL` moves them to " + at.Blobs.Name())
	}
	return nil
}

// restoreToServer moves the database of a backup to the server that the home's configuration names, if any. The database there must be
// empty: data that others use is never replaced. If a restore was interrupted, the server already holds this backup's id, and the restore continues.
func (c *program) restoreToServer(ctx context.Context, dir, id string) error {
	at, err := settings.DatabaseIn(c.getenv, dir)
	if err != nil || !at.OnServer() {
		return err
	}
	h, err := datadir.Open(dir)
	if err != nil {
		return err
	}
	file := store.Options{Path: h.DB(), BlobDir: h.Blobs()}
	_, err = dbcopy.MoveOnce(ctx, id, file, at.Options(h), nil)
	switch {
	case errors.Is(err, dbcopy.ErrNotEmpty):
		if err := backup.Finish(dir); err != nil { // no restore was interrupted: report the problem here
			return err
		}
		return fmt.Errorf("the files of the backup are in %s, but the database of %s is not empty and was left alone; create a new one, set databaseUrl to it, and run: chorus migrate --from sqlite:chorus.db --to URL", dir, at)
	case err != nil:
		return fmt.Errorf("the files of the backup are in %s, but its database could not be moved to the server; when the server is reachable, run `chorus restore --replace FILE` again; until then nothing starts with this home: %w", dir, err)
	}
	return database.RemoveFile(h.DB())
}

// openBackup opens a backup, decompressing it if necessary.
func (c *program) openBackup(name string) (io.Reader, func(), error) {
	var raw io.Reader = c.console.In
	closeFile := func() {}
	if name != "-" {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, &usage.Error{Err: fmt.Errorf("there is no file %s", name)}
		}
		if err != nil {
			return nil, nil, err
		}
		raw, closeFile = f, func() { _ = f.Close() } // the file was only read
	}
	in := bufio.NewReaderSize(raw, 1<<20)
	if head, _ := in.Peek(2); !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return in, closeFile, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		closeFile()
		return nil, nil, err
	}
	return z, closeFile, nil
}
