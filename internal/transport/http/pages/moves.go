package pages

import (
	"net/http"
	"time"

	"chorus/internal/command"
)

// moveEvery is how often a page about everything is told to look again, at most.
const moveEvery = time.Second

// moves tells pages about everything that something began, ended, waits or was answered.
// It says only that, and nothing of what: the page is read again with its reader's own rights.
func (p *Pages) moves(w http.ResponseWriter, r *http.Request) {
	by, ok := command.CallerOf(r.Context())
	if !ok || !by.May(command.Read) {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	if p.Stirs == nil {
		w.WriteHeader(http.StatusNoContent) // the page does not ask again then
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	s := &stream{pages: p, w: w, control: http.NewResponseController(w), by: by}
	ctx := r.Context()
	stirs := p.Stirs(ctx)
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
			if err = s.still(ctx); err == nil {
				err = s.send(": still here\n\n")
			}
		case <-stirs:
			if !due {
				due = true
				next.Reset(max(0, moveEvery-time.Since(told)))
			}
		case <-next.C:
			due, told = false, time.Now()
			err = s.send("data: moved\n\n")
		}
	}
}
