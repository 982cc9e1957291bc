package backup

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// unfinishedName is the note of a restore that has begun to change the home. What begins so is neither put aside nor backed up.
const unfinishedName = ".restore-unfinished.json"

// Unfinished is a restore that has changed something and has not come to its end: its process died, or the server could not be reached.
type Unfinished struct {
	ID     string    `json:"id"` // what it is called in the database that it moves to
	File   string    `json:"file"`
	Digest string    `json:"digest"` // of the backup's list
	Begun  time.Time `json:"begun"`
}

// Error says so, and what to do.
func (u *Unfinished) Error() string {
	return fmt.Sprintf("a restore of this home that was begun at %s was cut off, so that it may lack files, or its database is not where it belongs: run `chorus restore --replace %s` again, which goes on with it",
		u.Begun.Local().Format("2006-01-02 15:04:05"), u.File)
}

// FindUnfinished is the restore of a home that was cut off; nil: none was.
func FindUnfinished(dir string) (*Unfinished, error) {
	path := filepath.Join(dir, unfinishedName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	u := &Unfinished{}
	if err := json.Unmarshal(data, u); err != nil {
		return nil, fmt.Errorf("%s cannot be read, so a restore of this home was cut off: run `chorus restore --replace FILE` again: %w", path, err)
	}
	return u, nil
}

// begin notes that the home is about to be changed. One that goes on with the same backup keeps the name of the first.
func (t Target) begin(m Manifest) (*Unfinished, error) {
	list, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(list)
	u := &Unfinished{ID: rand.Text(), File: t.File, Digest: hex.EncodeToString(sum[:]), Begun: t.Now().UTC()}
	if before, err := FindUnfinished(t.Dir); err == nil && before != nil && before.Digest == u.Digest {
		u.ID = before.ID
	}
	data, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(t.Dir, ".restore-note-*")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(t.Dir, unfinishedName))
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	return u, syncFolder(t.Dir)
}

// Finish notes that everything of a restore is done.
func Finish(dir string) error {
	if err := os.Remove(filepath.Join(dir, unfinishedName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncFolder(dir)
}
