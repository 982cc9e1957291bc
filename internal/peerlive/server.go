package peerlive

import (
	"context"
	"iter"
	"net/http"
	"sync/atomic"
	"time"

	"chorus/internal/chat"
)

// Server answers other nodes. Secret and Source are required.
type Server struct {
	// Secret is shared by the nodes on the same database.
	Secret string
	// Source yields the pieces of a run on this node, starting with the
	// text so far. It returns false if there is none.
	Source func(ctx context.Context, thread chat.ThreadID) (iter.Seq[chat.Live], bool)
	// Stopping ends every stream when it is closed.
	Stopping <-chan struct{}

	open atomic.Int64
}

const (
	// maxStreams is the maximum number of streams to other nodes.
	maxStreams = 1000
	// writeTimeout is how long a node may take to read before it is disconnected.
	writeTimeout = 5 * time.Second
	// alive is how often something is sent when there is nothing to report.
	alive = 10 * time.Second
	// longestStream ends streams that nothing else ended. Nodes that still need one reconnect.
	longestStream = 10 * time.Minute
	// maxQueue is how many pieces may wait for a slow node.
	maxQueue = 256
)

// ServeHTTP streams the pieces of one thread.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	thread, err := chat.ParseThreadID(r.URL.Query().Get("thread"))
	switch {
	case err != nil || r.Method != http.MethodGet:
		http.Error(w, "nodes ask here for a thread", http.StatusBadRequest)
		return
	case !signed(r.Header.Get("Authorization"), s.Secret, thread, time.Now()):
		http.Error(w, "only nodes on the same database are answered here; their clocks may be ten minutes apart", http.StatusUnauthorized)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), longestStream)
	defer cancel()
	pieces, ok := s.Source(ctx, thread)
	if !ok {
		http.Error(w, "the thread does not run here", http.StatusNotFound)
		return
	}
	if !s.enter() {
		http.Error(w, "too many nodes watch threads of this one", http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	s.stream(ctx, cancel, w, pieces)
}

// enter registers a stream, unless there are too many.
func (s *Server) enter() bool {
	if s.open.Add(1) > maxStreams {
		s.leave()
		return false
	}
	return true
}

func (s *Server) leave() { s.open.Add(-1) }

func (s *Server) stream(ctx context.Context, cancel context.CancelFunc, w http.ResponseWriter, pieces iter.Seq[chat.Live]) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // a stream outlives the deadlines of ordinary requests
	s.pump(ctx, cancel, pieces, alive, func(l line) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // some writers have no deadline
		_, err := w.Write(l.encode())
		return err == nil && control.Flush() == nil
	})
}

// pump writes pieces, and an empty line now and then, until they end or the other side cannot keep up.
func (s *Server) pump(ctx context.Context, cancel context.CancelFunc, pieces iter.Seq[chat.Live], every time.Duration, write func(line) bool) {
	queue, ended := make(chan chat.Live, maxQueue), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(queue)
		for piece := range pieces {
			select {
			case queue <- piece:
			default:
				cancel() // it cannot keep up: it may reconnect and get the text so far
				return
			}
		}
	}()
	defer func() { cancel(); <-ended }()
	beat := time.NewTicker(every)
	defer beat.Stop()
	going := write(line{})
	for going {
		select {
		case piece, more := <-queue:
			switch {
			case more:
				going = write(lineOf(piece))
			case ctx.Err() == nil:
				write(line{End: true})
				return
			default:
				return
			}
		case <-beat.C:
			going = write(line{})
		case <-ctx.Done():
			return
		case <-s.Stopping:
			return
		}
	}
}
