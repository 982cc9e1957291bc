package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrInhabited means that there is already a home and its replacement was not allowed.
var ErrInhabited = errors.New("there is a home already")

// maxManifest is far more than the file list of any home needs.
const maxManifest = 256 << 20

// Target says where a backup is restored.
type Target struct {
	Dir     string // the home
	File    string // name of the backup, for whoever has to continue an interrupted restore
	Copies  Copies
	Replace bool // set aside what is there; without it an existing home is refused
	Now     func() time.Time
}

// Restored is the result of a restore.
type Restored struct {
	Manifest
	Aside string // where the previous home is now; "" if there was none
	ID    string // id of this restore; one that continues an interrupted restore has that one's id
}

// Restore reads a backup, checks it against its list, and only then replaces the home, the
// database last. Nobody may use the home meanwhile. The restore is recorded as unfinished
// until Finish is called, because the caller may have more to do.
func Restore(ctx context.Context, from io.Reader, t Target) (Restored, error) {
	var out Restored
	if t.Now == nil {
		t.Now = time.Now
	}
	lived := lives(t.Dir)
	if lived && !t.Replace {
		return out, fmt.Errorf("%w in %s", ErrInhabited, t.Dir)
	}
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return out, err
	}
	if err := clearStages(t.Dir); err != nil {
		return out, err
	}
	stage, err := os.MkdirTemp(t.Dir, stagePrefix+"*")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(stage)
	if out.Manifest, err = unpack(ctx, from, stage); err != nil {
		return out, err
	}
	snapshot := filepath.Join(stage, databaseName)
	if err := t.Copies.Check(ctx, snapshot); err != nil {
		return out, fmt.Errorf("the database of the backup: %w", err)
	}
	begun, err := t.begin(out.Manifest)
	if err != nil {
		return out, err
	}
	out.ID = begun.ID
	if lived {
		if out.Aside, err = t.newAside(); err != nil {
			return out, err
		}
	}
	return out, t.replace(ctx, stage, out.Aside)
}

// stagePrefix begins the names of folders in which backups are unpacked.
const stagePrefix = ".restore-stage-"

// clearStages removes what killed restores left.
func clearStages(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), stagePrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// newAside creates the folder for what was there before. There may be two restores in one second.
func (t Target) newAside() (string, error) {
	name := filepath.Join(t.Dir, "before-restore-"+t.Now().UTC().Format("20060102T150405"))
	err := os.Mkdir(name, 0o700)
	for n := 2; errors.Is(err, fs.ErrExist) && n < 100; n++ {
		if err = os.Mkdir(fmt.Sprintf("%s-%d", name, n), 0o700); err == nil {
			return fmt.Sprintf("%s-%d", name, n), nil
		}
	}
	return name, err
}

// lives reports whether a folder contains more than the remains of an earlier attempt.
func lives(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".restore-") })
}

// unpack writes a backup into a folder and verifies every file of it.
func unpack(ctx context.Context, from io.Reader, stage string) (Manifest, error) {
	root, err := os.OpenRoot(stage)
	if err != nil {
		return Manifest{}, err
	}
	defer root.Close()
	found := map[string]Entry{}
	var m *Manifest
	for r := tar.NewReader(from); ; {
		if err := ctx.Err(); err != nil {
			return Manifest{}, err
		}
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Manifest{}, notWhole(err)
		}
		if h.Name == manifestName {
			m = &Manifest{}
			if err := json.NewDecoder(io.LimitReader(r, maxManifest)).Decode(m); err != nil {
				return Manifest{}, notWhole(err)
			}
			continue
		}
		if !filepath.IsLocal(strings.TrimSuffix(h.Name, "/")) || m != nil {
			return Manifest{}, fmt.Errorf("this is not a Chorus backup: it contains %.100q", h.Name)
		}
		e, err := place(root, h, r)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return Manifest{}, notWhole(err)
		}
		if err != nil {
			return Manifest{}, fmt.Errorf("unpack %s: %w", h.Name, err)
		}
		found[e.Path] = e
	}
	if m == nil {
		return Manifest{}, notWhole(io.ErrUnexpectedEOF)
	}
	if m.Format > format {
		return Manifest{}, fmt.Errorf("the backup was made by a newer chorus (format %d, this one knows %d): upgrade chorus", m.Format, format)
	}
	return *m, compare(*m, found)
}

func notWhole(err error) error {
	return fmt.Errorf("the file is not a Chorus backup, or is incomplete; nothing was changed: %w", err)
}

// compare checks what was unpacked against the list.
func compare(m Manifest, found map[string]Entry) error {
	for _, want := range m.Files {
		got, ok := found[want.Path]
		switch {
		case !ok:
			return fmt.Errorf("the backup is damaged: %s is missing; nothing was changed", want.Path)
		case got != want:
			return fmt.Errorf("the backup is damaged: %s has changed; nothing was changed here", want.Path)
		}
	}
	if len(found) != len(m.Files) {
		return errors.New("the backup is damaged: it holds files that are not in its list; nothing was changed")
	}
	if _, ok := found[databaseName]; !ok {
		return errors.New("the backup holds no database; nothing was changed")
	}
	return nil
}

// place writes one file, folder or link below the folder, and never outside of it.
func place(root *os.Root, h *tar.Header, r io.Reader) (Entry, error) {
	name := strings.TrimSuffix(h.Name, "/")
	if err := makeFolders(root, path.Dir(name)); err != nil {
		return Entry{}, err
	}
	mode := fs.FileMode(h.Mode).Perm()
	switch h.Typeflag {
	case tar.TypeDir:
		if err := makeFolders(root, name); err != nil {
			return Entry{}, err
		}
		return Entry{Path: h.Name}, root.Chmod(name, mode|0o700)
	case tar.TypeSymlink:
		return Entry{Path: h.Name}, root.Symlink(h.Linkname, name)
	case tar.TypeReg:
	default:
		return Entry{}, fmt.Errorf("an entry of kind %q", h.Typeflag)
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o600)
	if err != nil {
		return Entry{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), r)
	if err == nil {
		err = f.Sync()
	}
	return Entry{Path: h.Name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, errors.Join(err, f.Close())
}

func makeFolders(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	if info, err := root.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := makeFolders(root, path.Dir(name)); err != nil {
		return err
	}
	return root.Mkdir(name, 0o700)
}

// replace puts what was unpacked in place of the home. Between its first step and its last there is
// a guard but no database: a home in this state refuses to start, and can be restored again.
func (t Target) replace(ctx context.Context, stage, aside string) error {
	dir := t.Dir
	guard, err := t.Copies.Guard(ctx, filepath.Join(dir, databaseName), filepath.Join(stage, databaseName))
	if err != nil {
		return err
	}
	if aside != "" {
		for _, tail := range []string{"", "-wal", "-shm"} {
			if err := move(dir, aside, databaseName+tail); err != nil {
				return err
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Name() == filepath.Base(guard) || strings.HasPrefix(e.Name(), ".restore-") || strings.HasPrefix(e.Name(), "before-restore-") {
				continue
			}
			if err := move(dir, aside, e.Name()); err != nil {
				return err
			}
		}
	}
	entries, err := os.ReadDir(stage)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), databaseName) { // with the files that inspecting it left next to it
			continue
		}
		if err := move(stage, dir, e.Name()); err != nil {
			return err
		}
	}
	return errors.Join(move(stage, dir, databaseName), syncFolder(dir))
}

// move renames a file or folder. It is no error if that does not exist.
func move(from, to, name string) error {
	if err := os.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncFolder makes renames survive a loss of power, if the file system can.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = f.Sync()
	return f.Close()
}
