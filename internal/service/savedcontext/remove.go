package savedcontext

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"chorus/internal/datadir"
	"chorus/internal/journal"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// everyContext is more than anybody saves.
const everyContext = 100_000

// With returns the saved contexts that hold something of what somebody said.
func (c *Contexts) With(ctx context.Context, said *Said) ([]store.SavedContext, error) {
	return c.where(ctx, store.ContextFilter{}, said.in)
}

// Of returns the saved contexts that contain something of a conversation.
func (c *Contexts) Of(ctx context.Context, row journal.Thread) ([]store.SavedContext, error) {
	return c.where(ctx, store.ContextFilter{Agent: row.Agent, Transport: row.ID.Transport(), Place: row.Place}, func(data []byte) bool {
		var file savedFile
		return json.Unmarshal(data, &file) != nil || slices.ContainsFunc(file.Messages, func(m savedMessage) bool { return m.Thread == row.ID })
	})
}

// where returns the saved contexts whose text fits. It leaves out those whose text this machine cannot read; what is damaged may contain
// anything, so it fits.
func (c *Contexts) where(ctx context.Context, f store.ContextFilter, fits func([]byte) bool) ([]store.SavedContext, error) {
	f.Limit = everyContext
	all, err := c.DB.SavedContexts(ctx, f)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(one store.SavedContext) bool {
		data, err := c.Settings.ReadContext(ctx, one)
		return err != nil || !fits(data)
	}), nil
}

// Forgotten adds the files of saved contexts to what other machines have to forget.
func Forgotten(f settings.Forgotten, list []store.SavedContext) settings.Forgotten {
	for _, one := range list {
		f.Files = append(f.Files, one.File)
	}
	return f
}

// Remove removes saved contexts. The rows go last: they say what is still to be removed if this is interrupted.
func (c *Contexts) Remove(ctx context.Context, list []store.SavedContext) error {
	for _, one := range list {
		if err := c.removeFiles(ctx, one); err != nil {
			return err
		}
		if err := c.DB.DropContext(ctx, one.ID); err != nil {
			return err
		}
	}
	return nil
}

// removeFiles removes the file of a saved context, and its text for other machines.
func (c *Contexts) removeFiles(ctx context.Context, one store.SavedContext) error {
	if err := datadir.RemoveFile(one.File); err != nil {
		return fmt.Errorf("remove a saved context: %w", err)
	}
	return c.Settings.ForgetContext(ctx, one.ID)
}
