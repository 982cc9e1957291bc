package savedcontext

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"chorus/internal/datadir"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/runsetup"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// interrupted is returned if a context is removed while it is saved.
var interrupted = operation.Errorf(operation.Conflict, "saving this context was interrupted for so long that what was there of it is being removed; save it again")

// keep writes the text, the file and the row of a context. If the process dies in between, Sweep removes what there is.
func (c *Contexts) keep(ctx context.Context, s Saving, row journal.Thread, file savedFile) (store.SavedContext, error) {
	dir, err := c.dir(row)
	if err != nil {
		return store.SavedContext{}, err
	}
	saved := store.SavedContext{ID: file.ID, Agent: row.Agent, Transport: row.ID.Transport(), Place: row.Place, Description: s.Description, Summary: file.Summary,
		By: s.By.String(), At: file.At, Messages: file.Count, From: file.From, Until: file.Until, File: filepath.Join(dir, file.ID+".json"), Quiet: s.Quiet}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return store.SavedContext{}, err
	}
	if err := c.DB.BeginContext(ctx, saved.ID, saved.File); err != nil {
		return store.SavedContext{}, lateError(err)
	}
	c.did("begun")
	if err := c.write(ctx, saved, append(data, '\n')); err != nil {
		return store.SavedContext{}, err
	}
	fresh, err := c.DB.KeepContext(ctx, saved)
	if errors.Is(err, store.ErrContextLeft) { // Sweep was here before the file was
		return store.SavedContext{}, errors.Join(lateError(err), c.removeFiles(ctx, saved))
	}
	if err != nil || fresh {
		return saved, err
	}
	if s.Key == "" { // the list already contains another one of this idle time
		if err := c.removeFiles(ctx, saved); err != nil {
			return saved, err
		}
	}
	return saved, c.DB.EndContext(ctx, saved.ID)
}

// did tells a test how far a context is written.
func (c *Contexts) did(step string) {
	if c.step != nil {
		c.step(step)
	}
}

// lateError says what to do if a context was removed meanwhile.
func lateError(err error) error {
	if errors.Is(err, store.ErrContextLeft) {
		return interrupted
	}
	return err
}

// dir returns the folder for a conversation's files: next to the agent's others; for an agent without a folder, with
// the place.
func (c *Contexts) dir(row journal.Thread) (string, error) {
	dir := filepath.Join(c.Home.AgentDir(row.Agent), "sessions")
	if !runsetup.IsDir(c.Home.AgentDir(row.Agent)) {
		dir = filepath.Join(filepath.Dir(c.Home.ThreadDir(row.ID)), "sessions")
	}
	return c.Home.Ensure(dir)
}

// write writes the text and the file.
func (c *Contexts) write(ctx context.Context, saved store.SavedContext, data []byte) error {
	if err := c.Settings.KeepContext(ctx, saved.ID, data); err != nil { // a context that is too long can only be restored on this machine
		c.Log.Warn("other machines cannot restore a saved context", "component", "contexts", "event", "context_not_shared", "agent", saved.Agent, "error", err)
	}
	c.did("text")
	err := datadir.WriteFile(saved.File, data, 0o600)
	c.did("file")
	return err
}

// LeftAfter is how old what there is of a context must be before it counts as left by a killed process. Writing it takes
// moments; the clocks of machines differ by minutes at most. Whoever takes longer, because their machine slept, is told to save again.
const LeftAfter = time.Hour

// Sweep removes what was left of contexts whose saving was interrupted, and returns how many of them there were.
func (c *Contexts) Sweep(ctx context.Context) (swept int, err error) {
	left, err := c.DB.LeftContexts(ctx, c.DB.Now().Add(-LeftAfter))
	if err != nil || len(left) == 0 {
		return 0, err
	}
	if err := c.Settings.TellForgotten(ctx, id.New(), Forgotten(settings.Forgotten{}, left)); err != nil { // the machine that has the file may be another
		return 0, err
	}
	for _, one := range left {
		failed := c.removeFiles(ctx, one)
		if failed == nil {
			failed = c.DB.EndContext(ctx, one.ID)
		}
		if failed == nil {
			swept++
		}
		err = errors.Join(err, failed) // one failure does not hold up the others
	}
	return swept, err
}
