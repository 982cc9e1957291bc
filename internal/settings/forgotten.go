package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/datadir"
)

// A document without a file tells all nodes what was forgotten. Each node
// removes what it has of it, and records how far it has come.
const forgottenPrefix = "forgotten/"

// Forgotten is what somebody wanted to be forgotten, as far as nodes have
// files of it. It does not say whom it concerns.
type Forgotten struct {
	Threads []chat.ThreadID `json:"threads,omitempty"` // threads whose mirrors are rewritten
	Files   []string        `json:"files,omitempty"`   // of saved contexts, on the machine that saved them
	Erased  []chat.ThreadID `json:"erased,omitempty"`  // threads whose folders are removed
}

// TellForgotten tells other nodes what must be forgotten, under its own id.
func (s *Settings) TellForgotten(ctx context.Context, id string, f Forgotten) error {
	if s.Documents == nil || !s.shared || len(f.Threads)+len(f.Files)+len(f.Erased) == 0 {
		return nil
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := s.Documents.Keep(ctx, forgottenPrefix+id, text); err != nil {
		return fmt.Errorf("tell other nodes what is to be forgotten: %w", err)
	}
	if s.Documents.Notify != nil {
		s.Documents.Notify()
	}
	return nil
}

// FollowForgotten passes everything that was forgotten since the last time to
// do, for this home. What fails is retried the next time.
func (s *Settings) FollowForgotten(ctx context.Context, do func(context.Context, Forgotten) error) error {
	if s.Documents == nil || !s.shared {
		return nil
	}
	database, err := s.Documents.Store.Identity(ctx)
	if err != nil {
		return err
	}
	heads, err := s.Documents.Store.Changed(ctx, s.forgottenUpTo(database))
	for _, h := range heads {
		if err != nil {
			return err
		}
		if strings.HasPrefix(h.Name, forgottenPrefix) {
			err = s.forgetOne(ctx, h.Name, do)
		}
		if err == nil {
			err = s.setForgottenUpTo(database, h.Seq)
		}
	}
	return err
}

func (s *Settings) forgetOne(ctx context.Context, name string, do func(context.Context, Forgotten) error) error {
	text, err := s.Documents.Kept(ctx, name)
	if err != nil || text == nil {
		return err
	}
	var f Forgotten
	if err := json.Unmarshal(text, &f); err != nil {
		return nil // written by a later version
	}
	return do(ctx, f)
}

// forgottenUpTo returns the number of the last document change that was processed.
func (s *Settings) forgottenUpTo(database string) int64 {
	data, err := os.ReadFile(s.Home.ForgottenUpTo())
	known, number, ok := strings.Cut(strings.TrimSpace(string(data)), " ")
	if err != nil || !ok || known != database {
		return 0
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (s *Settings) setForgottenUpTo(database string, n int64) error {
	if _, err := s.Home.Ensure(filepath.Dir(s.Home.ForgottenUpTo())); err != nil {
		return err
	}
	return datadir.WriteFile(s.Home.ForgottenUpTo(), fmt.Appendf(nil, "%s %d\n", database, n), 0o600)
}

// RemoveSaved removes the file of a saved context if it belongs to this home.
func (s *Settings) RemoveSaved(file string) error {
	if rel, err := filepath.Rel(s.Home.Dir(), file); err != nil || !filepath.IsLocal(rel) || filepath.Ext(file) != ".json" {
		return nil
	}
	if err := datadir.RemoveFile(file); err != nil {
		return fmt.Errorf("remove a saved context: %w", err)
	}
	return nil
}
