package mcpserver

import (
	"context"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

const (
	// betweenUpdates is the least time between two notices of one thread: a run writes many events.
	betweenUpdates = 500 * time.Millisecond
	// maxSubscriptions is how many threads one client may follow: each is a stream.
	maxSubscriptions = 50
)

// subscriptions are the threads that clients want to be told about. The SDK knows whom to tell; here is what has to be
// followed for that: each thread once, however many want it. There is one for each server of the SDK.
type subscriptions struct {
	s    *Server
	told func() *sdk.Server // whose clients they are

	mu       sync.Mutex
	followed map[string]*followed // by address
}

// followed is a thread with those who want to be told about it.
type followed struct {
	clients map[*sdk.ServerSession]bool
	cancel  context.CancelFunc
}

// subscribe begins to follow a thread that the caller may read. Subscribing twice is as good as once.
func (s *subscriptions) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	uri := req.Params.URI
	id, query, ok := parts(uri, threadsURI)
	if !ok || len(query) > 0 {
		return operation.Errorf(operation.Invalid, "only threads can be subscribed to: %s/ID", threadsURI)
	}
	by := callerOf(ctx, req)
	session, err := operations.GetSession.Call(ctx, s.s.o.Executor, by, operations.SessionRef{ID: id})
	if err != nil {
		return s.s.unreadable(&sdk.ReadResourceRequest{Params: &sdk.ReadResourceParams{URI: uri}}, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, one := range s.followed {
		if one.clients[req.Session] {
			count++
		}
	}
	f := s.followed[uri]
	switch {
	case f != nil && f.clients[req.Session]:
		return nil
	case count >= maxSubscriptions:
		return operation.Errorf(operation.Busy, "a client can follow %d threads at a time", maxSubscriptions)
	case f == nil:
		following, cancel := context.WithCancel(s.s.ended)
		f = &followed{clients: map[*sdk.ServerSession]bool{}, cancel: cancel}
		s.followed[uri] = f
		s.s.work.Go(func() {
			defer cancel()
			s.follow(following, by, id, session.Seq, uri)
		})
	}
	f.clients[req.Session] = true
	if count == 0 {
		go func() { // it ends with the session, and so do its wishes
			_ = req.Session.Wait()
			s.drop(req.Session, "")
		}()
	}
	return nil
}

func (s *subscriptions) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	s.drop(req.Session, req.Params.URI)
	return nil
}

// drop forgets what a client wanted: one address, or "" for all. A thread that nobody wants is not followed any more.
func (s *subscriptions) drop(session *sdk.ServerSession, uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for address, f := range s.followed {
		if uri != "" && uri != address {
			continue
		}
		if delete(f.clients, session); len(f.clients) == 0 {
			f.cancel()
			delete(s.followed, address)
		}
	}
}

// follow tells of changes until the stream ends: what is written to the journal counts, not every word on its way.
func (s *subscriptions) follow(ctx context.Context, by operation.Caller, id string, seq int64, uri string) {
	changed := make(chan struct{}, 1)
	s.s.work.Go(func() {
		defer close(changed)
		for item, err := range operations.Watch.Follow(ctx, s.s.o.Executor, by, operations.WatchRequest{ID: id, After: seq}) {
			if err != nil {
				return
			}
			if item.Header().Seq > seq {
				seq = item.Header().Seq
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	})
	for range changed {
		_ = s.told().ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // a client that is gone is not told
		select {
		case <-time.After(betweenUpdates):
		case <-ctx.Done():
		}
	}
}
