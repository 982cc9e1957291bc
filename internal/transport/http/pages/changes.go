package pages

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"chorus/internal/operation"
)

// Minimum times between two events.
const (
	changesEvery = time.Second
	boardEvery   = 250 * time.Millisecond
)

// changeEvents tells overview pages that something changed. The event has no content: the page reloads itself with its reader's rights.
func (p *Pages) changeEvents(w http.ResponseWriter, r *http.Request) {
	if s := p.changeStream(w, r); s != nil {
		_ = s.follow(r.Context(), p.Changes(r.Context()), changesEvery, func() error { return s.send("data: moved\n\n") }, func() error { return nil }) // the reader has left
	}
}

// frame returns the parts around every page that show what happens elsewhere, for a page that learned of a change.
func (p *Pages) frame(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	around := p.layout(r, by, "")
	around.Path = localPath(r.URL.Query().Get("at"))
	parts, err := p.frameParts(around)
	if err != nil {
		return err
	}
	data, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return err
}

// frameParts are the parts around a page that change, by selector: the list of conversations and the number of pending approvals.
func (p *Pages) frameParts(around layout) (map[string]string, error) {
	out := map[string]string{}
	for selector, name := range map[string]string{".recent": "recent", ".bar nav": "top-places", ".places": "side-places", ".asked-place": "asked"} {
		html, err := p.fragment(name, map[string]any{"Layout": around})
		if err != nil {
			return nil, err
		}
		out[selector] = html
	}
	return out, nil
}

// boardEvents sends changes of the board: cards that differ, and their places. A page passes "version" for what it
// shows; if that is current, nothing is sent.
func (p *Pages) boardEvents(w http.ResponseWriter, r *http.Request) {
	s := p.changeStream(w, r)
	if s == nil {
		return
	}
	var shown boardView
	var parts map[string]string
	has, first := r.URL.Query().Get("version"), true
	tell := func() error {
		now, err := p.board(r.Context(), s.by, r.URL.Query())
		if err != nil {
			return err
		}
		frame := p.layout(r, s.by, "Work")
		frame.Path = "/work"
		drawn, err := p.boardParts(now, frame)
		if err != nil {
			return err
		}
		u, changed := now.since(shown)
		if first && has == u.Version {
			u.Columns, u.Cards, changed = nil, nil, false
		}
		u.Parts = changedParts(drawn, parts)
		shown, parts, first = now, drawn, false
		if !changed && len(u.Parts) == 0 {
			return nil
		}
		data, err := json.Marshal(u)
		if err != nil {
			return err
		}
		return s.send("event: board\ndata: " + string(data) + "\n\n")
	}
	changes := p.Changes(r.Context()) // before the first read, so that no later change is missed
	err := tell()
	if err == nil {
		err = s.follow(r.Context(), changes, boardEvery, tell, tell)
	}
	if err != nil && r.Context().Err() == nil {
		p.Log.Debug("the stream of the board ended", "component", "web", "error", err)
	}
}

// changeStream starts a stream about changes; nil: it failed, and the reader was told.
func (p *Pages) changeStream(w http.ResponseWriter, r *http.Request) *stream {
	by, ok := operation.CallerOf(r.Context())
	if !ok || !by.May(operation.Read) {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return nil
	}
	if p.Changes == nil {
		w.WriteHeader(http.StatusNoContent) // tells EventSource not to reconnect
		return nil
	}
	return p.openStream(w, by, "2000")
}

// openStream starts an event stream; retry is after how many milliseconds a page reconnects. nil: the reader is gone.
func (p *Pages) openStream(w http.ResponseWriter, by operation.Caller, retry string) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	s := &stream{pages: p, w: w, control: http.NewResponseController(w), by: by}
	_ = s.control.SetReadDeadline(time.Time{}) // a stream outlives the time limit of requests; writers that cannot set one have none
	if s.send("retry: "+retry+"\n\n") != nil {
		return nil
	}
	return s
}

// beat tells a page that the server is alive, if its reader still has access.
func (s *stream) beat(ctx context.Context) error {
	if err := s.recheck(ctx); err != nil {
		return err
	}
	return s.send(": still here\n\n")
}

// follow calls one function after changes, with a minimum interval, and another with each heartbeat, until the reader leaves.
func (s *stream) follow(ctx context.Context, changes <-chan struct{}, every time.Duration, changed, beats func() error) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	next := time.NewTimer(time.Hour)
	defer next.Stop()
	var told time.Time
	due := false
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.pages.Stopping:
			return s.send(": the server is stopping; come again\n\n")
		case <-beat.C:
			if err = s.beat(ctx); err == nil {
				err = beats()
			}
		case <-changes:
			if !due {
				due = true
				next.Reset(max(0, every-time.Since(told)))
			}
		case <-next.C:
			due, told = false, time.Now()
			err = changed()
		}
		if err != nil {
			return err
		}
	}
}
