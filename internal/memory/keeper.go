package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/digest"
	"chorus/internal/text"
)

// MaxFile is the largest file that is read: far more than is shown, but small enough to be read at once.
const MaxFile = 256 << 10

// Origin says who made a change, and how.
type Origin struct {
	Who    string // on whose words, as displayed; "" if unknown
	Thread chat.ThreadID
	Call   string
	How    string // by hand, edit, forget, restore, or the tool's name
	Owner  bool   // by somebody who runs this home: shown as it is, not as somebody's words
}

// ByHand is the How of a change that nobody announced.
const ByHand = "by hand"

// Version is a file after a change.
type Version struct {
	Path   string
	N      int64
	Digest string
	Text   string // "": the file was empty or gone
	Lines  Spans
	Origin
	At time.Time
}

// Versions stores versions.
type Versions interface {
	// MemoryVersions lists the versions of a file without their texts, newest first.
	MemoryVersions(ctx context.Context, path string) ([]Version, error)
	// MemoryVersion returns one version; n 0 is the newest. It returns false if there is none.
	MemoryVersion(ctx context.Context, path string, n int64) (Version, bool, error)
	// AddMemoryVersion stores a version under its number, and deletes its
	// announcement. It returns false if this number already exists.
	AddMemoryVersion(ctx context.Context, v Version) (bool, error)
	// PlanMemoryWrite announces a text. PlannedMemoryWrite returns
	// what was announced, or false if nothing was.
	PlanMemoryWrite(ctx context.Context, v Version) error
	PlannedMemoryWrite(ctx context.Context, path, digest string) (Version, bool, error)
	// MemoryPaths returns the files that have versions.
	MemoryPaths(ctx context.Context) ([]string, error)
	// ForgetMemory removes all versions of a file.
	ForgetMemory(ctx context.Context, path string) error
}

// Copies keeps files equal to those of other machines that share the versions.
type Copies interface {
	Owns(name string) bool
	Sync(ctx context.Context, name string) error
	Change(ctx context.Context, name string, change func(text []byte) ([]byte, error)) error
}

// Keeper reads memory files and keeps their versions. It is safe for concurrent use.
type Keeper struct {
	// Copies are those of this home; nil: it is the only one. They must be set before the first use.
	Copies Copies

	dir      string
	versions Versions
	now      func() time.Time

	mu    sync.Mutex
	root  *os.Root
	known map[string]*seen
}

// seen is a file as it was last read.
type seen struct {
	info    fs.FileInfo // nil: it did not exist
	content Content
}

// Content is the contents of a file.
type Content struct {
	File
	Text    string
	Size    int64
	Problem string // why it is not shown, and what to do; "": nothing is wrong
	Version int64  // 0: it never existed
	At      time.Time
	parts   []Part
}

// Part is the part of a text from one origin.
type Part struct {
	Origin
	Text string
}

// NewKeeper returns the keeper of a home folder's memory.
func NewKeeper(dir string, versions Versions, now func() time.Time) *Keeper {
	return &Keeper{dir: dir, versions: versions, now: now, known: map[string]*seen{}}
}

// Close closes the folder.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.root == nil {
		return nil
	}
	err := k.root.Close()
	k.root = nil
	return err
}

// Read returns the present contents of a file. If the file is unchanged, that takes one system
// call. A change is first stored as a version; an error means that this failed.
func (k *Keeper) Read(ctx context.Context, f File) (Content, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.read(ctx, f)
}

func (k *Keeper) read(ctx context.Context, f File) (Content, error) {
	if k.root == nil {
		root, err := os.OpenRoot(k.dir)
		if err != nil {
			return Content{}, err
		}
		k.root = root
	}
	// One system call shows that nothing has changed. Only a changed file is opened step
	// by step from the home folder, so that no link leads out of it.
	now, err := os.Lstat(filepath.Join(k.dir, f.Path))
	if err != nil {
		now = nil
	}
	if last := k.known[f.Path]; last != nil && same(last.info, now) {
		return last.content, nil
	}
	info, err := k.root.Lstat(filepath.FromSlash(f.Path))
	if err != nil {
		info = nil
	}
	c := k.open(f, info, err)
	if c.Problem == "" && k.shared(f) {
		if c, now, err = k.latest(ctx, f, c, now); err != nil {
			return c, err
		}
	}
	if c.Problem == "" {
		if c, err = k.look(ctx, c); err != nil {
			return c, err
		}
	}
	k.known[f.Path] = &seen{now, c}
	return c, nil
}

// open returns the contents of a file, without who wrote them.
func (k *Keeper) open(f File, info fs.FileInfo, err error) Content {
	c := Content{File: f}
	if info != nil {
		c.Size, c.At = info.Size(), info.ModTime()
		var data []byte
		data, c.Problem = k.load(f, info)
		c.Text = string(data)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		c.Problem = "it cannot be reached (" + text.Cause(err).Error() + "): a link in the path leads out of the home folder, or its permissions are wrong"
	}
	return c
}

func (k *Keeper) shared(f File) bool { return k.Copies != nil && k.Copies.Owns(f.Path) }

// latest makes sure that a text that is not the newest version is a change,
// and not what another machine has already replaced.
func (k *Keeper) latest(ctx context.Context, f File, c Content, now fs.FileInfo) (Content, fs.FileInfo, error) {
	last, has, err := k.versions.MemoryVersion(ctx, f.Path, 0)
	if err != nil || has && last.Digest == Digest(c.Text) || !has && c.Text == "" {
		return c, now, err
	}
	if err := k.Copies.Sync(ctx, f.Path); err != nil {
		return c, now, err
	}
	if now, err = os.Lstat(filepath.Join(k.dir, f.Path)); err != nil {
		now = nil
	}
	info, err := k.root.Lstat(filepath.FromSlash(f.Path))
	if err != nil {
		info = nil
	}
	return k.open(f, info, err), now, nil
}

func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

// load reads a file. problem says why that is not possible and what to do.
func (k *Keeper) load(f File, info fs.FileInfo) (data []byte, problem string) {
	switch {
	case info.IsDir():
		return nil, "it is a folder: move the folder away and write a file"
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, "it is a link, and memory is not read through links: put the file itself there"
	case !info.Mode().IsRegular():
		return nil, "it is neither a file nor a folder: remove it"
	case info.Size() > MaxFile:
		return nil, fmt.Sprintf("it has %s, and at most %s are read: move what is not needed in every conversation elsewhere", size(info.Size()), size(MaxFile))
	}
	file, err := k.root.OpenFile(filepath.FromSlash(f.Path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, "it cannot be read (" + text.Cause(err).Error() + "): give Chorus the right to read it"
	}
	defer file.Close()
	if opened, err := file.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, "it was replaced while it was read: it is read again in a moment"
	}
	data, err = io.ReadAll(io.LimitReader(file, MaxFile+1))
	switch {
	case err != nil:
		return nil, "it cannot be read (" + text.Cause(err).Error() + ")"
	case len(data) > MaxFile:
		return nil, fmt.Sprintf("it grew beyond %s: move what is not needed in every conversation elsewhere", size(MaxFile))
	case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		return nil, "it is not text in UTF-8: save it as UTF-8, or restore an earlier version"
	}
	return data, ""
}

// look stores a version if the text differs from the newest, and determines who wrote which part.
func (k *Keeper) look(ctx context.Context, c Content) (Content, error) {
	digest := Digest(c.Text)
	for { // somebody else may have seen the same change
		last, has, err := k.versions.MemoryVersion(ctx, c.Path, 0)
		if err != nil {
			return c, err
		}
		if !has && c.Text == "" {
			return c, nil
		}
		if !has || last.Digest != digest {
			next := Version{Path: c.Path, N: last.N + 1, Digest: digest, Text: c.Text, Origin: Origin{How: ByHand, Owner: true}, At: k.now()}
			planned, was, err := k.versions.PlannedMemoryWrite(ctx, c.Path, digest)
			if err != nil {
				return c, err
			}
			if !was {
				// It was moved away and back, or written by another machine:
				// words remain those of whoever said them.
				if planned, was, err = k.before(ctx, c.Path, digest); err != nil {
					return c, err
				}
			}
			if was {
				next.Origin = planned.Origin
			}
			if next.Lines = planned.Lines; next.Lines == nil {
				next.Lines = Attribute(last.Text, last.Lines, c.Text, next.N)
			}
			if added, err := k.versions.AddMemoryVersion(ctx, next); err != nil {
				return c, err
			} else if !added {
				continue
			}
			last = next
		}
		c.Version = last.N
		c.parts, err = k.partsOf(ctx, c.Path, c.Text, last)
		return c, err
	}
}

// before finds the newest version that had a text, or returns false.
func (k *Keeper) before(ctx context.Context, path, digest string) (Version, bool, error) {
	all, err := k.versions.MemoryVersions(ctx, path)
	if err != nil {
		return Version{}, false, err
	}
	at := slices.IndexFunc(all, func(v Version) bool { return v.Digest == digest })
	if at < 0 || digest == Digest("") { // an empty file is nobody's words
		return Version{}, false, nil
	}
	return all[at], true, nil
}

// partsOf splits a text by who wrote it. Lines that no version contains are nobody's, and are shown as such.
func (k *Keeper) partsOf(ctx context.Context, path, whole string, last Version) ([]Part, error) {
	all, err := k.versions.MemoryVersions(ctx, path)
	if err != nil {
		return nil, err
	}
	origins := map[int64]Origin{}
	for _, v := range all {
		origins[v.N] = v.Origin
	}
	origins[last.N] = last.Origin
	lines := Lines(whole)
	var parts []Part
	for i, version := range last.Lines.each(len(lines)) {
		origin := origins[version]
		if n := len(parts); n > 0 && parts[n-1].sameVoice(origin) {
			parts[n-1].Text += "\n" + lines[i]
			continue
		}
		parts = append(parts, Part{origin, lines[i]})
	}
	return parts, nil
}

// sameVoice reports whether lines of an origin may be in one part with these.
func (p Part) sameVoice(o Origin) bool { return p.Owner == o.Owner && (p.Owner || p.Who == o.Who) }

// Digest returns the digest that identifies a text.
func Digest(text string) string {
	return digest.Of(text)[:32]
}

// Announce records that somebody is about to write a text, so that the change is attributed to them.
func (k *Keeper) Announce(ctx context.Context, f File, text string, by Origin) error {
	return k.announce(ctx, f, text, by, nil)
}

func (k *Keeper) announce(ctx context.Context, f File, text string, by Origin, lines Spans) error {
	return k.versions.PlanMemoryWrite(ctx, Version{Path: f.Path, Digest: Digest(text), Lines: lines, Origin: by, At: k.now()})
}

// ErrMoved means that a file is no longer what the writer has seen.
var ErrMoved = errors.New("the file was changed meanwhile")

// Write replaces the contents of a file; "" removes it. Unless seen is
// negative, it must still be the number of the newest version.
func (k *Keeper) Write(ctx context.Context, f File, whole string, seen int64, by Origin) (Content, error) {
	return k.write(ctx, f, whole, seen, by, nil)
}

func (k *Keeper) write(ctx context.Context, f File, whole string, seen int64, by Origin, lines Spans) (Content, error) {
	if len(whole) > MaxFile {
		return Content{}, fmt.Errorf("%s do not fit: at most %s are read", size(int64(len(whole))), size(MaxFile))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shared(f) { // before looking, so that what another machine has just written is taken into account
		if err := k.Copies.Sync(ctx, f.Path); err != nil {
			return Content{}, err
		}
	}
	now, err := k.read(ctx, f)
	switch {
	case err != nil:
		return now, err
	case seen >= 0 && now.Version != seen:
		return now, ErrMoved
	case now.Problem == "" && now.Text == whole:
		return now, nil
	}
	if err := k.announce(ctx, f, whole, by, lines); err != nil {
		return now, err
	}
	if err := k.put(ctx, f, now, whole); err != nil {
		return now, err
	}
	return k.read(ctx, f)
}

// put writes the file in one step, or removes it, here and on other
// machines. There it must be in the same state as here.
func (k *Keeper) put(ctx context.Context, f File, was Content, whole string) error {
	if k.shared(f) && was.Problem == "" {
		return k.Copies.Change(ctx, f.Path, func(text []byte) ([]byte, error) {
			switch {
			case string(text) != was.Text:
				return nil, ErrMoved
			case whole == "":
				return nil, nil
			}
			return []byte(whole), nil
		})
	}
	if whole == "" {
		err := k.root.Remove(filepath.FromSlash(f.Path))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	dir := filepath.Dir(filepath.FromSlash(f.Path))
	if err := k.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if _, err := k.root.Stat(dir); err != nil { // a link that leads out of the home folder
		return err
	}
	return datadir.WriteFile(filepath.Join(k.dir, filepath.FromSlash(f.Path)), []byte(whole), 0o600)
}

// History lists the versions of a file without their texts, newest
// first, after checking the file for changes.
func (k *Keeper) History(ctx context.Context, f File) ([]Version, error) {
	if _, err := k.Read(ctx, f); err != nil {
		return nil, err
	}
	return k.versions.MemoryVersions(ctx, f.Path)
}

// Version returns one version with its text; 0 is the newest. It returns false if there is none.
func (k *Keeper) Version(ctx context.Context, f File, n int64) (Version, bool, error) {
	return k.versions.MemoryVersion(ctx, f.Path, n)
}

// Restore restores a file to a version. The lines remain those of whoever wrote them.
func (k *Keeper) Restore(ctx context.Context, f File, n, seen int64, by Origin) (Content, error) {
	v, has, err := k.versions.MemoryVersion(ctx, f.Path, n)
	if err != nil {
		return Content{}, err
	}
	if !has || n <= 0 {
		return Content{}, fs.ErrNotExist
	}
	by.Owner = by.Owner && v.Owner
	return k.write(ctx, f, v.Text, seen, by, v.Lines)
}

// Forget removes a file and everything that is stored about it.
func (k *Keeper) Forget(ctx context.Context, f File) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	was, err := k.read(ctx, f)
	if err != nil {
		return err
	}
	if err := k.put(ctx, f, was, ""); err != nil {
		return err
	}
	delete(k.known, f.Path)
	return k.versions.ForgetMemory(ctx, f.Path)
}

// All returns the files that exist, and those that once did, sorted by path.
func (k *Keeper) All(ctx context.Context) ([]File, error) {
	paths, err := k.versions.MemoryPaths(ctx)
	if err != nil {
		return nil, err
	}
	for _, pattern := range []string{Name, System, Identity, "*/" + Name, "*/*/" + Name} {
		found, _ := filepath.Glob(filepath.Join(escape(k.dir), filepath.FromSlash(pattern)))
		for _, name := range found {
			if rel, err := filepath.Rel(k.dir, name); err == nil {
				paths = append(paths, filepath.ToSlash(rel))
			}
		}
	}
	_ = filepath.WalkDir(filepath.Join(k.dir, "agents"), func(name string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(k.dir, name)
		if err == nil && relErr == nil && d.Type().IsRegular() && strings.HasSuffix(name, ".md") {
			paths = append(paths, filepath.ToSlash(rel))
		}
		return nil
	})
	slices.Sort(paths)
	var out []File
	for _, name := range slices.Compact(paths) {
		if f, err := Parse(name); err == nil {
			out = append(out, f)
		}
	}
	return out, nil
}

// escape escapes the pattern characters in a folder's own name.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}
