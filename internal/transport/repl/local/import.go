package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/mirror/session"
	"chorus/internal/runsetup"
	"chorus/internal/settings"
)

// Import is the result of an import.
type Import struct {
	ID       string
	Messages int
	Already  bool
}

// ImportLCA imports a session log of the Local Coding Agent as a thread. Importing
// it twice is harmless.
func (sessions *Sessions) ImportLCA(ctx context.Context, path string, o runsetup.SessionOptions, warn func(string)) (Import, error) {
	f, err := os.Open(path)
	if err != nil {
		return Import{}, fmt.Errorf("import: %w", err)
	}
	defer f.Close()
	log, err := session.Read(f, func(s string) { warn(path + ": " + s) })
	if err != nil {
		return Import{}, fmt.Errorf("import %s: %w", path, err)
	}
	lines := log.Lines()
	if len(lines) == 0 {
		return Import{}, fmt.Errorf("import %s: it contains no messages; is it a session log?", path)
	}
	if o.Dir == "" && runsetup.IsDir(log.Start.RepoRoot) {
		o.Dir = log.Start.RepoRoot
	}
	if err := sessions.Setup.Check(&o); err != nil {
		return Import{}, err
	}
	name := log.Start.SessionID
	if !settings.PlainID(name) {
		name = id.New()
	}
	s := &Session{app: sessions, dir: o.Dir}
	if s.thread, err = chat.NewThreadID("cli", settings.Place(o.Dir), name, o.Agent); err != nil {
		return Import{}, err
	}
	if _, err := sessions.Service.FindThread(ctx, string(s.thread)); err == nil {
		return Import{ID: name, Already: true}, nil
	} else if !errors.Is(err, journal.ErrUnknown) {
		return Import{}, err
	}
	lines = session.Resume(lines, cmp.Or(o.ResumeMode, "full"), warn)
	b, err := sessions.Setup.Toolbox(s.thread, o.Dir)
	if err != nil {
		return Import{}, err
	}
	for key, value := range log.Notes {
		if err := b.Notes.Set(ctx, key, value); err != nil {
			return Import{}, err
		}
	}
	return Import{ID: name, Messages: len(lines)}, s.importLines(ctx, lines, path)
}
