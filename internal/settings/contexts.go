package settings

import (
	"context"
	"fmt"
	"os"
	"strings"

	"chorus/internal/store"
)

// Saved contexts are files for people on the machine that saved them. Their text is
// also in the database, so that every machine can restore them.

const contextPrefix = "contexts/"

func contextName(id string) string { return contextPrefix + id + ".json" }

// KeepContext stores the text of a saved context for all machines, instead of what an earlier attempt to save it left.
func (s *Settings) KeepContext(ctx context.Context, id string, text []byte) error {
	if s.Documents == nil {
		return nil
	}
	return s.Documents.KeepAnew(ctx, contextName(id), text)
}

// ReadContext reads a saved context from its file, or from the database if the file is on another machine.
func (s *Settings) ReadContext(ctx context.Context, c store.SavedContext) ([]byte, error) {
	data, missing := os.ReadFile(c.File)
	if missing == nil || s.Documents == nil {
		return data, missing
	}
	text, err := s.Documents.Kept(ctx, contextName(c.ID))
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, missing
	}
	return text, nil
}

// ForgetContext removes the text of a saved context from the database.
func (s *Settings) ForgetContext(ctx context.Context, id string) error {
	if s.Documents == nil {
		return nil
	}
	return s.Documents.Delete(ctx, contextName(id))
}

// everyContext is more than anybody saves.
const everyContext = 1 << 30

// TakeOverContexts stores the texts of contexts that earlier versions saved here only as files.
func (s *Settings) TakeOverContexts(ctx context.Context) error {
	rows, err := s.DB.SavedContexts(ctx, store.ContextFilter{Limit: everyContext})
	if err != nil || len(rows) == 0 {
		return err
	}
	heads, err := s.Documents.Store.List(ctx, contextPrefix)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, h := range heads {
		known[strings.TrimSuffix(strings.TrimPrefix(h.Name, contextPrefix), ".json")] = true
	}
	for _, c := range rows {
		if known[c.ID] {
			continue
		}
		text, err := os.ReadFile(c.File)
		if err != nil {
			continue // it belongs to another machine
		}
		if err := s.KeepContext(ctx, c.ID, text); err != nil {
			return fmt.Errorf("take over the saved context %s: %w", c.ID, err)
		}
	}
	return nil
}
