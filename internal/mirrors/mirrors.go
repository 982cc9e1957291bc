package mirrors

import (
	"chorus/internal/chat"
	"chorus/internal/mirror"
	"chorus/internal/settings"
	"chorus/internal/toollog"
	"context"
	"path/filepath"
	"time"
)

// BatchSize is how many events wait for the logs at most.
const BatchSize = 200

// MirrorTools brings the hourly files of a thread's calls to the journal's end, for
// agents that have them: those of rooms, and all when TOOLS_PATH says where.
func (a *Mirrors) MirrorTools(ctx context.Context, thread chat.ThreadID) error {
	dir := a.Env("TOOLS_PATH")
	if dir == "" {
		bot, err := a.Settings.Bot(thread.Agent())
		if err != nil || !settings.NamesParticipants(bot) {
			return nil // a mistake in the configuration is told where it matters
		}
		dir = filepath.Join(a.Home.Dir(), "tools")
	}
	if _, err := a.DB.Thread(ctx, thread); err != nil {
		return nil // nothing was said in it
	}
	agent, channel := toollog.Dir(thread)
	w, err := toollog.Open(dir, agent, channel)
	if err != nil {
		return err
	}
	var batch []chat.Event
	for ev, err := range a.DB.AllEvents(ctx, thread, w.LastSeq()) {
		if err != nil {
			return err
		}
		if batch = append(batch, ev); len(batch) == BatchSize {
			if err := w.Apply(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return w.Apply(batch)
}

func (a *Mirrors) OpenLogs(thread chat.ThreadID) (*mirror.Thread, error) {
	m, err := mirror.Open(a.Home.ThreadDir(thread))
	if err == nil {
		m.Blobs = func(hash string) ([]byte, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			return a.DB.Blob(ctx, hash)
		}
	}
	return m, err
}

// Mirror brings a thread's log.jsonl and context.jsonl to the journal's end.
func (a *Mirrors) Mirror(ctx context.Context, thread chat.ThreadID) error {
	if _, err := a.DB.Thread(ctx, thread); err != nil {
		return nil // nothing was said in it
	}
	m, err := a.OpenLogs(thread)
	if err != nil {
		return err
	}
	var batch []chat.Event
	for ev, err := range a.DB.AllEvents(ctx, thread, m.LastSeq()) {
		if err != nil {
			return err
		}
		if batch = append(batch, ev); len(batch) == 500 {
			if err := m.Apply(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return m.Apply(batch)
}
