// Package backup writes a whole home into one file while it is in use, and restores it.
//
// A backup is one consistent state: the database as it was at one moment, with every file that it
// refers to. A truncated or changed file is refused before anything in the home is touched. An
// interrupted restore leaves a home that refuses to start, and not one that has silently lost
// something.
package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/digest"
)

// manifestName is the last file of a backup. Without it a backup is incomplete.
const manifestName = "chorus-backup.json"

// databaseName is the name of the database in a backup and in a home.
const databaseName = "chorus.db"

// format is increased when older programs can no longer read the file.
const format = 1

// Manifest describes the content of a backup.
type Manifest struct {
	Format  int       `json:"format"`
	At      time.Time `json:"at"`
	Version string    `json:"version,omitempty"` // version of the program
	Files   []Entry   `json:"files"`
	Lost    []string  `json:"lost,omitempty"` // blobs that the home had already lost
}

// Entry is one file of a backup.
type Entry struct {
	Path   string `json:"path"` // with slashes, below the home
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // "" for a folder or a link
}

// Database is the open database of a home.
type Database interface {
	// CopyTo writes the database, as it is at one moment, to a file that does not exist yet.
	CopyTo(ctx context.Context, to string, progress func(done, all int)) error
	// BytesOutside reads a blob that is neither in the database nor in a file of the
	// home. It fails with fs.ErrNotExist if the blob is lost.
	BytesOutside(ctx context.Context, hash string) ([]byte, error)
}

// Copies handles databases that nobody has open.
type Copies interface {
	// BlobFiles returns the blobs in files of their own, by hash, with their sizes.
	BlobFiles(ctx context.Context, path string) (map[string]int64, error)
	// Check reports damage.
	Check(ctx context.Context, path string) error
	// Guard sets the guard of the database at path to the state of another database,
	// which is about to replace it, and returns the guard's file.
	Guard(ctx context.Context, path, other string) (string, error)
}

// Source is a home to back up.
type Source struct {
	Dir     string // the home
	Blobs   string // where its blobs are
	DB      Database
	Copies  Copies
	Version string
	Now     func() time.Time
}

// skipped reports whether a name in a home is not backed up: what is generated again,
// what belongs to running processes, and what a repair set aside.
func skipped(name string) bool {
	switch name {
	case "locks", "run", "cache", "logs", "walls", ".trash", "blobs", "search.db", "search.db-wal", "search.db-shm":
		return true
	}
	for _, prefix := range []string{databaseName, "guard-", ".probe-", ".restore-", "before-restore-", "damaged-", "lost-", "rescued-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.Contains(name, ".tmp-")
}

// Write writes a backup. progress, which may be nil, is called with the number of bytes done and the total.
func Write(ctx context.Context, to io.Writer, s Source, progress func(done, all int64)) (Manifest, error) {
	if s.Now == nil {
		s.Now = time.Now
	}
	b := &writer{Source: s, tar: tar.NewWriter(to), progress: progress}
	b.Format, b.At, b.Manifest.Version, b.Files = format, s.Now().UTC(), s.Version, []Entry{}
	dir, err := os.MkdirTemp(s.Dir, ".restore-backup-*")
	if err != nil {
		return b.Manifest, fmt.Errorf("back up %s: %w", s.Dir, err)
	}
	defer os.RemoveAll(dir)
	// The database comes first: what it refers to exists from then on, and later files do no harm.
	snapshot := filepath.Join(dir, databaseName)
	if err := s.DB.CopyTo(ctx, snapshot, nil); err != nil {
		return b.Manifest, fmt.Errorf("back up %s: %w", s.Dir, err)
	}
	if err := b.write(ctx, snapshot); err != nil {
		return b.Manifest, fmt.Errorf("back up %s: %w", s.Dir, err)
	}
	return b.Manifest, nil
}

// writer is a backup in progress.
type writer struct {
	Source
	Manifest
	tar       *tar.Writer
	progress  func(done, all int64)
	done, all int64
}

func (b *writer) write(ctx context.Context, snapshot string) error {
	blobs, err := b.Copies.BlobFiles(ctx, snapshot)
	if err != nil {
		return err
	}
	if info, err := os.Stat(snapshot); err == nil {
		b.all = info.Size()
	}
	for _, size := range blobs {
		b.all += size
	}
	if err := b.file(ctx, databaseName, snapshot); err != nil {
		return err
	}
	for _, hash := range slices.Sorted(maps.Keys(blobs)) {
		name := path.Join("blobs", hash[:2], hash)
		err := b.file(ctx, name, filepath.Join(b.Blobs, hash[:2], hash))
		if errors.Is(err, fs.ErrNotExist) {
			err = b.outside(ctx, name, hash)
		}
		if errors.Is(err, fs.ErrNotExist) {
			b.Lost = append(b.Lost, hash)
			continue
		}
		if err != nil {
			return err
		}
	}
	if err := b.rest(ctx); err != nil {
		return err
	}
	data, err := json.MarshalIndent(b.Manifest, "", " ")
	if err != nil {
		return err
	}
	if err := b.tar.WriteHeader(&tar.Header{Name: manifestName, Mode: 0o600, Size: int64(len(data)), ModTime: b.At}); err != nil {
		return err
	}
	if _, err := b.tar.Write(data); err != nil {
		return err
	}
	return b.tar.Close()
}

// rest writes everything of the home except database and blobs.
func (b *writer) rest(ctx context.Context) error {
	return filepath.WalkDir(b.Dir, func(at string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone since it was listed
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case at == b.Dir:
			return nil
		}
		rel, err := filepath.Rel(b.Dir, at)
		if err != nil {
			return err
		}
		if filepath.Dir(rel) == "." && skipped(d.Name()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name := filepath.ToSlash(rel)
		switch {
		case d.IsDir():
			return b.other(name+"/", tar.Header{Typeflag: tar.TypeDir}, d)
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(at)
			if err != nil {
				return nil // gone
			}
			return b.other(name, tar.Header{Typeflag: tar.TypeSymlink, Linkname: target}, d)
		case d.Type().IsRegular():
			if err := b.file(ctx, name, at); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil // gone, or a socket or the like
	})
}

// other writes a folder or a link.
func (b *writer) other(name string, h tar.Header, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return nil // gone
	}
	h.Name, h.Mode, h.ModTime = name, int64(info.Mode().Perm()), info.ModTime()
	b.Files = append(b.Files, Entry{Path: name})
	return b.tar.WriteHeader(&h)
}

// file writes a file in its current state. If it grows meanwhile, the additional bytes are left out.
func (b *writer) file(ctx context.Context, name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := b.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime()}); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(b.tar, io.TeeReader(io.LimitReader(&reporter{ctx: ctx, Reader: f, to: b}, info.Size()), sum))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if n < info.Size() {
		return fmt.Errorf("%s became shorter while it was read; try again", from)
	}
	b.Files = append(b.Files, Entry{Path: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// outside writes a blob that the home keeps in an external storage.
func (b *writer) outside(ctx context.Context, name, hash string) error {
	data, err := b.DB.BytesOutside(ctx, hash)
	if err != nil {
		return err
	}
	if err := b.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: b.At}); err != nil {
		return err
	}
	if _, err := io.Copy(b.tar, &reporter{ctx: ctx, Reader: bytes.NewReader(data), to: b}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.Files = append(b.Files, Entry{Path: name, Size: int64(len(data)), SHA256: digest.Of(data)})
	return nil
}

// reporter reports how much was read, and stops when ctx ends.
type reporter struct {
	io.Reader
	ctx context.Context
	to  *writer
}

func (r *reporter) Read(into []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.Reader.Read(into)
	r.to.done += int64(n)
	if r.to.progress != nil {
		r.to.progress(r.to.done, max(r.to.all, r.to.done))
	}
	return n, err
}
