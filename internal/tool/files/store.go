package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"chorus/internal/tool"
)

// maxEditable is the largest file that is changed as a whole in memory.
const maxEditable = 16 << 20

// draft is a file before a change: its contents, and its real path after inner links.
type draft struct {
	place  Place
	real   string // below the root, without links
	key    string // for the locks
	git    bool   // it lies in a git directory, or will
	exists bool
	old    string
	mode   fs.FileMode // 0 for a new file: the system's default
}

// target returns where a write to the place would go. It follows links inside the root, as opening the file
// would, and refuses links that lead outside. others are written together with it.
func (r *Roots) target(place Place, others ...Place) (draft, error) {
	o := r.roots[place.Root]
	if !o.Writable {
		return draft{}, tool.Mistake("@" + place.Root + " is read-only.")
	}
	if place.Path == "." {
		return draft{}, tool.Mistake(place.String() + " is a directory.")
	}
	real := place.Path
	root, err := o.handle(false)
	if err == nil {
		real, err = o.realPath(root, place.Path)
	} else if errors.Is(err, fs.ErrNotExist) && place.Root != Workspace {
		err = nil // the first write creates it
	}
	if err != nil {
		return draft{}, r.explain(place, err)
	}
	return draft{place: place, real: real, key: filepath.Join(o.trueDir(), filepath.FromSlash(real)), git: r.gitAsks(Place{place.Root, real}, others...)}, nil
}

// judgedTarget is target for a call that was judged: the path must lead where it led then.
func (r *Roots) judgedTarget(ctx context.Context, toolName string, place Place, others ...Place) (draft, error) {
	d, err := r.target(place, others...)
	if err == nil {
		err = judged(ctx, toolName, place, Place{place.Root, d.real}, d.git)
	}
	return d, err
}

// load reads the current contents. A missing file is not an error.
func (r *Roots) load(d draft) (draft, error) {
	file, info, err := r.openReal(d)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, r.explain(d.place, err)
	}
	defer file.Close()
	switch {
	case info.IsDir():
		return d, tool.Mistake(d.place.String() + " is a directory.")
	case info.Size() > maxEditable:
		return d, tool.Mistake(fmt.Sprintf("%s is too large to change this way (%d bytes).", d.place, info.Size()))
	}
	data, err := io.ReadAll(io.LimitReader(file, maxEditable+1))
	if err != nil {
		return d, r.explain(d.place, err)
	}
	if len(data) > maxEditable {
		return d, tool.Mistake(d.place.String() + " is too large to change this way.")
	}
	// Set-id bits are not kept: the new file is ours, and the old one may have been somebody else's.
	d.exists, d.old, d.mode = true, string(data), info.Mode().Perm()
	return d, nil
}

// save writes the file in one step: readers see the old or the new text, and a crash leaves
// one of the two. It creates parent directories and keeps mode bits.
func (r *Roots) save(d draft, content string) error {
	if d.exists && d.mode&0o200 == 0 {
		return tool.Mistake(d.place.String() + " is write-protected (mode " + d.mode.String() + ").")
	}
	dir, name, err := r.openParent(d, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	temp := ".chorus-" + rand.Text() + ".tmp"
	err = writeTemp(dir, temp, content, d.mode)
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		_ = dir.Remove(temp)
		return r.explain(d.place, err)
	}
	return nil
}

// writeTemp prevents processes from being started while the file is open. A child would hold
// a copy of the descriptor until shortly after its own program has begun, and the system
// does not run a script that somebody could still write to.
func writeTemp(root *os.Root, temp, content string, mode fs.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	if err == nil && mode != 0 {
		err = file.Chmod(mode)
	}
	return errors.Join(err, file.Close())
}

// realPath resolves the links in name. A root with only some reachable files has no links.
func (o *openRoot) realPath(root *os.Root, name string) (string, error) {
	real, err := realPath(root, name)
	if err == nil && o.Only != nil && real != name {
		return "", errors.New("path escapes from parent")
	}
	return real, err
}

// realPath resolves the links in name inside root. Parts that do not exist yet stay unchanged.
func realPath(root *os.Root, name string) (string, error) {
	rest := strings.Split(name, "/")
	var done []string
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(done) == 0 {
				return "", errors.New("path escapes from parent")
			}
			done = done[:len(done)-1]
			continue
		}
		here := path.Join(path.Join(done...), part)
		info, err := root.Lstat(filepath.FromSlash(here))
		if errors.Is(err, fs.ErrNotExist) {
			done = append(done, part)
			continue
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = append(done, part)
			continue
		}
		if links++; links > 40 {
			return "", syscall.ELOOP
		}
		to, err := root.Readlink(filepath.FromSlash(here))
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(to) {
			return "", errors.New("path escapes from parent")
		}
		rest = append(strings.Split(filepath.ToSlash(to), "/"), rest...)
	}
	if len(done) == 0 {
		return ".", nil
	}
	return path.Join(done...), nil
}

// change implements every tool that writes one file: find it, lock it,
// load it, call next for the new text, save it.
func (r *Roots) change(ctx context.Context, toolName, name string, next func(draft) (string, error)) (draft, string, error) {
	place, err := r.Find(name)
	if err != nil {
		return draft{}, "", err
	}
	d, err := r.judgedTarget(ctx, toolName, place)
	if err != nil {
		return d, "", err
	}
	release, err := r.locks.acquire(ctx, r.who, d.key)
	if err != nil {
		return d, "", err
	}
	defer release()
	if d, err = r.load(d); err != nil {
		return d, "", err
	}
	if err := r.mayShow(ctx, d); err != nil {
		return d, "", err
	}
	content, err := next(d)
	if err != nil {
		return d, "", err
	}
	if err := r.beforeSave(ctx, toolName, d, content); err != nil {
		return d, "", err
	}
	return d, content, r.save(d, content)
}

// mayShow refuses a file that must not be read to a tool whose answers show parts of what it changes.
func (r *Roots) mayShow(ctx context.Context, d draft) error {
	if d.exists && r.Hider(ctx).Hides(Entry{Place: d.place, Real: Place{d.place.Root, d.real}}) {
		return tool.Mistake(d.place.String() + " is refused: a rule keeps it from being read, and the answer would show parts of it. Write it whole, if that is allowed.")
	}
	return nil
}

// beforeSave calls BeforeSave, if set, before a text is written.
func (r *Roots) beforeSave(ctx context.Context, toolName string, d draft, content string) error {
	if r.BeforeSave == nil {
		return nil
	}
	return r.BeforeSave(ctx, toolName, d.place, content)
}

// Change replaces a file's text by next's result, for a call that was judged as
// toolName. The error is an answer for the model, or the context's.
func (r *Roots) Change(ctx context.Context, toolName, name string, next func(old string) (string, error)) error {
	_, _, err := r.change(ctx, toolName, name, func(d draft) (string, error) { return next(d.old) })
	return err
}
