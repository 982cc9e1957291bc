package documents

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/datadir"
	"chorus/internal/digest"
	"chorus/internal/plainfile"
	"chorus/internal/symlink"
)

// looked is a file as it was when last read, so that a pass need not read unchanged files.
type looked struct {
	info   fs.FileInfo
	at     time.Time
	digest string
}

// coarse is how long after a change another change may have the same timestamp.
const coarse = 100 * time.Millisecond

// glance examines a file without its text, which is not read if the file has not changed.
func (c *Copies) glance(k Kind, name string) (copyFile, error) {
	info, err := os.Lstat(c.Path(name))
	if err == nil {
		c.mu.Lock()
		last, known := c.looked[name]
		c.mu.Unlock()
		if known && os.SameFile(info, last.info) && info.Size() == last.info.Size() && info.Mode() == last.info.Mode() &&
			info.ModTime().Equal(last.info.ModTime()) && last.at.Sub(info.ModTime()) > coarse {
			return copyFile{there: true, digest: last.digest}, nil
		}
	}
	began := time.Now()
	file, err := c.read(k, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looked == nil {
		c.looked = map[string]looked{}
	}
	if delete(c.looked, name); err == nil && file.there && info != nil && info.Mode().IsRegular() {
		c.looked[name] = looked{info, began, file.digest}
	}
	return file, err
}

// read examines a file and reads its text.
func (c *Copies) read(k Kind, name string) (copyFile, error) {
	if err := c.noLinkAbove(k, name); err != nil {
		return copyFile{}, err
	}
	at := c.Path(name)
	info, err := os.Stat(at)
	if k.Plain || k.tree(name) != "" {
		info, err = os.Lstat(at)
	}
	if missing(err) || err == nil && info.IsDir() && k.tree(name) != "" { // a former file may be a folder now
		return copyFile{gone: c.gone(k, name)}, nil
	}
	if err != nil {
		return copyFile{}, err
	}
	var found content
	switch limit := k.largest(name); {
	case info.Mode()&fs.ModeSymlink != 0 && k.tree(name) != "":
		found.link, err = os.Readlink(at)
		if err == nil && !symlink.StaysInside(strings.TrimPrefix(name, k.tree(name)+"/"), found.link) {
			return copyFile{}, fmt.Errorf("%s is a link that leads elsewhere, so it stays on this machine; put a copy there", at)
		}
	case !info.Mode().IsRegular():
		return copyFile{}, fmt.Errorf("%s is not a regular file; other machines cannot have a copy of it", at)
	case info.Size() > limit:
		return copyFile{}, fmt.Errorf("%s is longer than %d bytes, so it stays on this machine; make it shorter", at, limit)
	default:
		found.exec = info.Mode()&0o111 != 0
		found.body, err = plainfile.ReadNoLink(at, limit)
	}
	if missing(err) {
		return copyFile{gone: c.gone(k, name)}, nil
	}
	if err != nil {
		return copyFile{}, err
	}
	text, err := k.pack(name, found)
	if err != nil {
		return copyFile{}, err
	}
	return copyFile{there: true, content: found, text: text, digest: digest.Of(text)}, nil
}

// noLinkAbove refuses a file below a link, because it may be anywhere. Only the top of a tree may be a link.
func (c *Copies) noLinkAbove(k Kind, name string) error {
	top := k.tree(name)
	if top == "" && !k.Plain {
		return nil
	}
	if k.Plain {
		top = ""
	}
	for dir := path.Dir(name); dir != "." && len(dir) > len(top); dir = path.Dir(dir) {
		if info, err := os.Lstat(c.Path(dir)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link, so what lies below it stays on this machine; put a copy there", c.Path(dir))
		}
	}
	return nil
}

// inTrees returns the existing files in trees.
func (c *Copies) inTrees(k Kind) []string {
	var out []string
	for _, pattern := range k.Trees {
		for _, top := range c.glob(pattern) {
			found := 0
			c.walk(top, func(name string, d fs.DirEntry) bool {
				if d.IsDir() || !k.owns(name) {
					return true
				}
				if found++; found > mostInTree {
					c.tell(fmt.Sprintf("%s has more than %d files; those behind %s stay on this machine", c.Path(top), mostInTree, name))
					return false
				}
				out = append(out, name)
				return true
			})
		}
	}
	return out
}

// walk goes through a tree by name until do returns false. Its top may be a link.
func (c *Copies) walk(top string, do func(name string, d fs.DirEntry) bool) {
	_ = fs.WalkDir(os.DirFS(c.Path(top)), ".", func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case at != "." && leftOut(d.Name()), strings.Count(at, "/") >= deepest:
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !do(path.Join(top, at), d):
			return fs.SkipAll
		}
		return nil
	})
}

// keepBeside saves the text of a file that is about to be replaced next to it. The name
// identifies the text, so that doing it twice leaves one file.
func (c *Copies) keepBeside(k Kind, name string, file copyFile) error {
	if k.Spare || file.link != "" {
		return nil
	}
	beside := c.Path(name) + ".replaced-" + file.digest[:8]
	if err := datadir.WriteFile(beside, file.body, 0o600); err != nil {
		return err
	}
	c.tell(fmt.Sprintf("%s was changed here and on another machine; the other change was kept, and the text from here is in %s", c.Path(name), beside))
	return nil
}

func (c *Copies) writeCopy(ctx context.Context, k Kind, name string, file copyFile, text []byte) error {
	to, err := k.unpack(name, text)
	if err != nil {
		return fmt.Errorf("%s is not written: %w", c.Path(name), err)
	}
	if !file.there && k.Write != nil {
		return k.Write(ctx, name, to.body)
	}
	at := c.Path(name)
	if _, err := c.Home.Ensure(filepath.Dir(at)); err != nil {
		return err
	}
	if to.link != "" {
		return replaceLink(to.link, at)
	}
	mode := fs.FileMode(0o600)
	if to.exec {
		mode = 0o700
	}
	return datadir.WriteFile(at, to.body, mode)
}

// replaceLink makes a link in one step.
func replaceLink(target, at string) error {
	tmp := filepath.Join(filepath.Dir(at), "."+filepath.Base(at)+".tmp-link")
	if err := os.Remove(tmp); err != nil && !missing(err) {
		return err
	}
	if err := os.Symlink(filepath.FromSlash(target), tmp); err != nil {
		return err
	}
	return os.Rename(tmp, at)
}

// removeCopy removes a file, and the folders of a tree that become empty.
func (c *Copies) removeCopy(ctx context.Context, k Kind, name string) error {
	if k.Remove != nil {
		return k.Remove(ctx, name)
	}
	if err := os.Remove(c.Path(name)); err != nil && !missing(err) {
		return err
	}
	if tree := k.tree(name); tree != "" {
		for dir := path.Dir(name); len(dir) > len(tree); dir = path.Dir(dir) {
			if os.Remove(c.Path(dir)) != nil { // the folder is not empty
				break
			}
		}
	}
	return nil
}
