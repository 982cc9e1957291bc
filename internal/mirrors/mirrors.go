package mirrors

import (
	"context"
	"path/filepath"
	"time"

	"chorus/internal/chat"
	"chorus/internal/mirror"
	"chorus/internal/settings"
	"chorus/internal/toollog"
)

// BatchSize is how many events wait for the logs at most.
const BatchSize = 200

// MirrorTools brings the hourly files of a thread's calls to the journal's end, for
// agents that have them: those of rooms, and all when TOOLS_PATH says where.
func (m *Mirrors) MirrorTools(ctx context.Context, thread chat.ThreadID) error {
	dir := m.Env("TOOLS_PATH")
	if dir == "" {
		bot, err := m.Settings.Bot(thread.Agent())
		if err != nil || !settings.NamesParticipants(bot) {
			return nil // a mistake in the configuration is told where it matters
		}
		dir = filepath.Join(m.Home.Dir(), "tools")
	}
	if _, err := m.DB.Thread(ctx, thread); err != nil {
		return nil // nothing was said in it
	}
	agent, channel := toollog.Dir(thread)
	w, err := toollog.Open(dir, agent, channel)
	if err != nil {
		return err
	}
	var batch []chat.Event
	for ev, err := range m.DB.AllEvents(ctx, thread, w.LastSeq()) {
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

func (mirrors *Mirrors) OpenLogs(thread chat.ThreadID) (*mirror.Thread, error) {
	m, err := mirror.Open(mirrors.Home.ThreadDir(thread))
	if err == nil {
		m.Blobs = func(hash string) ([]byte, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			return mirrors.DB.Blob(ctx, hash)
		}
	}
	return m, err
}

// Mirror brings a thread's log.jsonl and context.jsonl to the journal's end.
func (mirrors *Mirrors) Mirror(ctx context.Context, thread chat.ThreadID) error {
	if _, err := mirrors.DB.Thread(ctx, thread); err != nil {
		return nil // nothing was said in it
	}
	m, err := mirrors.OpenLogs(thread)
	if err != nil {
		return err
	}
	var batch []chat.Event
	for ev, err := range mirrors.DB.AllEvents(ctx, thread, m.LastSeq()) {
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
