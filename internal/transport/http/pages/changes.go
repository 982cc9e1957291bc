package pages

import (
	"net/http"
	"time"

	"chorus/internal/operation"
)

// changesEvery is the shortest time between two events.
const changesEvery = time.Second

// changeEvents tells overview pages that something changed. The event has no content: the page
// reloads itself with the rights of its reader.
func (p *Pages) changeEvents(w http.ResponseWriter, r *http.Request) {
	by, ok := operation.CallerOf(r.Context())
	if !ok || !by.May(operation.Read) {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	if p.Changes == nil {
		w.WriteHeader(http.StatusNoContent) // tells EventSource not to reconnect
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	s := &stream{pages: p, w: w, control: http.NewResponseController(w), by: by}
	ctx := r.Context()
	stirs := p.Changes(ctx)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	next := time.NewTimer(time.Hour)
	defer next.Stop()
	var told time.Time
	due := false
	err := s.send("retry: 2000\n\n")
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-p.Stopping:
			_ = s.send(": the server is stopping; come again\n\n")
			return
		case <-beat.C:
			if err = s.recheck(ctx); err == nil {
				err = s.send(": still here\n\n")
			}
		case <-stirs:
			if !due {
				due = true
				next.Reset(max(0, changesEvery-time.Since(told)))
			}
		case <-next.C:
			due, told = false, time.Now()
			err = s.send("data: moved\n\n")
		}
	}
}
