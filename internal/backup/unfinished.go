package backup

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"chorus/internal/atomicfile"
	"chorus/internal/digest"
)

// unfinishedName records a restore that has begun to change the home. Names
// with this prefix are neither set aside nor backed up.
const unfinishedName = ".restore-unfinished.json"

// Unfinished is a restore that has changed something and did not complete:
// its process died, or the server could not be reached.
type Unfinished struct {
	ID     string    `json:"id"` // its name in the database that it moves to
	File   string    `json:"file"`
	Digest string    `json:"digest"` // of the backup's list
	Begun  time.Time `json:"begun"`
}

// Error says what happened and what to do.
func (u *Unfinished) Error() string {
	return fmt.Sprintf("a restore of this home that was begun at %s was cut off, so that it may lack files, or its database is not where it belongs: run `chorus restore --replace %s` again, which continues it",
		u.Begun.Local().Format("2006-01-02 15:04:05"), u.File)
}

// FindUnfinished returns the interrupted restore of a home, or nil.
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

// begin records that the home is about to be changed. If it continues
// with the same backup, it keeps the first id.
func (t Target) begin(m Manifest) (*Unfinished, error) {
	list, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	u := &Unfinished{ID: rand.Text(), File: t.File, Digest: digest.Of(list), Begun: t.Now().UTC()}
	if before, err := FindUnfinished(t.Dir); err == nil && before != nil && before.Digest == u.Digest {
		u.ID = before.ID
	}
	data, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(filepath.Join(t.Dir, unfinishedName), data, 0o600); err != nil {
		return nil, err
	}
	return u, syncFolder(t.Dir)
}

// Finish records that a restore is complete.
func Finish(dir string) error {
	if err := os.Remove(filepath.Join(dir, unfinishedName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncFolder(dir)
}
