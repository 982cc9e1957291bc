package blobstorage

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Folder stores blobs in files, for example on a disk shared by several machines. A file with its
// final name has all its bytes: it is written under another name, synced and renamed.
type Folder struct {
	dir string
	now func() time.Time
}

var _ Storage = (*Folder)(nil)

// NewFolder returns the storage in a folder. The folder must exist: a missing one means that a
// disk is not mounted. now is the clock for file times; nil means time.Now.
func NewFolder(dir string, now func() time.Time) *Folder {
	if now == nil {
		now = time.Now
	}
	return &Folder{dir: filepath.Clean(dir), now: now}
}

// Name implements Storage.
func (f *Folder) Name() string { return "file://" + filepath.ToSlash(f.dir) }

func (f *Folder) path(hash string) string { return filepath.Join(f.dir, hash[:2], hash) }

// there reports that a missing folder is a problem of the storage, not of what is searched for in it.
func (f *Folder) there() error {
	info, err := os.Stat(f.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no folder %s: mount the disk that it is on, or create it", ErrAway, f.dir)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrAway, err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder: correct blobUrl", f.dir)
	}
	return nil
}

// partPrefix begins the names of unfinished files.
const partPrefix = ".new-"

// Put implements Storage.
func (f *Folder) Put(ctx context.Context, hash string, data []byte) error {
	if err := errors.Join(ctx.Err(), f.there()); err != nil {
		return err
	}
	path := f.path(hash)
	if kept, err := os.ReadFile(path); err == nil && bytes.Equal(kept, data) {
		return os.Chtimes(path, time.Time{}, f.now()) // refresh its time, so that no sweep removes it
	}
	return f.write(path, data)
}

func (f *Folder) write(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	part := filepath.Join(dir, partPrefix+rand.Text())
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Chtimes(part, time.Time{}, f.now())
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync() // file systems that cannot sync a folder report this, and then there is nothing more to do
	return d.Close()
}

// Get implements Storage.
func (f *Folder) Get(ctx context.Context, hash string) ([]byte, error) {
	if err := errors.Join(ctx.Err(), f.there()); err != nil {
		return nil, err
	}
	return os.ReadFile(f.path(hash))
}

// Size implements Storage.
func (f *Folder) Size(ctx context.Context, hash string) (int64, error) {
	if err := errors.Join(ctx.Err(), f.there()); err != nil {
		return 0, err
	}
	info, err := os.Stat(f.path(hash))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Remove implements Storage.
func (f *Folder) Remove(ctx context.Context, hash string) error {
	if err := errors.Join(ctx.Err(), f.there()); err != nil {
		return err
	}
	if err := os.Remove(f.path(hash)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List implements Storage. It also removes files that were begun before then and never completed.
func (f *Folder) List(ctx context.Context, before time.Time, found func(hash string, size int64) error) error {
	if err := f.there(); err != nil {
		return err
	}
	folders, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if !folder.IsDir() || len(folder.Name()) != 2 {
			continue
		}
		files, err := os.ReadDir(filepath.Join(f.dir, folder.Name()))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := ctx.Err(); err != nil {
				return err
			}
			info, err := file.Info()
			if err != nil || !info.Mode().IsRegular() || !info.ModTime().Before(before) {
				continue // gone meanwhile, not ours, or recent
			}
			switch name := file.Name(); {
			case strings.HasPrefix(name, partPrefix):
				err = os.Remove(filepath.Join(f.dir, folder.Name(), name))
			case IsHash(name) && strings.HasPrefix(name, folder.Name()):
				err = found(name, info.Size())
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// Owner implements Storage.
func (f *Folder) Owner(ctx context.Context) (string, error) {
	if err := errors.Join(ctx.Err(), f.there()); err != nil {
		return "", err
	}
	name, err := os.ReadFile(filepath.Join(f.dir, OwnerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(name)), err
}

// SetOwner implements Storage.
func (f *Folder) SetOwner(ctx context.Context, owner string) error {
	if err := errors.Join(ctx.Err(), f.there()); err != nil {
		return err
	}
	return f.write(filepath.Join(f.dir, OwnerFile), []byte(owner+"\n"))
}

// Check implements Storage.
func (f *Folder) Check(ctx context.Context) error {
	if err := errors.Join(ctx.Err(), f.there()); err != nil {
		return err
	}
	path, data := filepath.Join(f.dir, ".probe-"+rand.Text()), []byte("written by chorus doctor")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	read, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(read, data) {
		err = fmt.Errorf("%s has other bytes than were written", path)
	}
	return errors.Join(err, os.Remove(path))
}

// Close implements Storage.
func (f *Folder) Close() error { return nil }
