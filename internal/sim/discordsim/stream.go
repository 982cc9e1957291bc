package discordsim

import (
	"fmt"
	"net/http"
	"strings"

	"chorus/internal/sim/discordsim/guild"
)

// stream is a page that watches as one person. queue is guarded by Sim's lock.
type stream struct {
	who   *guild.Account
	queue [][]byte
	wake  chan struct{}
}

func (t *stream) push(name string, data []byte) {
	t.queue = append(t.queue, fmt.Appendf(nil, "data: {\"t\":%q,\"d\":%s}\n\n", name, data))
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// events sends a person everything that they may see, as it happens.
func (s *Sim) events(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimSpace(r.URL.Query().Get("token"))
	s.mu.Lock()
	who := s.guild.AccountByToken(token)
	t := &stream{who: who, wake: make(chan struct{}, 1)}
	if who != nil {
		s.streams[t] = struct{}{}
	}
	s.mu.Unlock()
	if who == nil {
		http.Error(w, "nobody has this token", http.StatusUnauthorized)
		return
	}
	defer func() {
		s.mu.Lock()
		delete(s.streams, t)
		s.mu.Unlock()
	}()
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte("data: {\"t\":\"HELLO\",\"d\":null}\n\n")) // a client that has gone is noticed below
	for {
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-t.wake:
		case <-r.Context().Done():
			return
		case <-s.quit:
			return
		}
		s.mu.Lock()
		list := t.queue
		t.queue = nil
		s.mu.Unlock()
		for _, one := range list {
			if _, err := w.Write(one); err != nil {
				return
			}
		}
	}
}
