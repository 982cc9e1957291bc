package mcpserver

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/await"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

const (
	// betweenUpdates is the minimum time between two notices about one thread: a run writes many events.
	betweenUpdates = 500 * time.Millisecond
	// maxSubscriptions limits the threads that one client may follow: each needs a stream.
	maxSubscriptions = 50
)

// subscriptions are the threads, projects and tasks that clients want to be notified about. The SDK knows whom to
// notify; this type follows each resource once, however many clients want it. There is one for each server of the SDK.
type subscriptions struct {
	s    *Server
	told func() *sdk.Server // whose clients they are

	mu       sync.Mutex
	followed map[string]*followed // by address
}

// followed is a thread and its subscribers.
type followed struct {
	clients map[*sdk.ServerSession]bool
	cancel  context.CancelFunc
}

// subscribe starts following a resource that the caller may read. Subscribing twice has no further effect.
func (s *subscriptions) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	uri := req.Params.URI
	by := callerOf(ctx, req)
	follow, err := s.follower(ctx, by, uri)
	if err != nil {
		return err
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
		return operation.Errorf(operation.Busy, "a client can follow %d resources at a time", maxSubscriptions)
	case f == nil:
		following, cancel := context.WithCancel(s.s.ended)
		f = &followed{clients: map[*sdk.ServerSession]bool{}, cancel: cancel}
		s.followed[uri] = f
		s.s.work.Go(func() {
			defer cancel()
			follow(following)
		})
	}
	f.clients[req.Session] = true
	if count == 0 {
		go func() { // it ends with the session, and so do its subscriptions
			_ = req.Session.Wait()
			s.drop(req.Session, "")
		}()
	}
	return nil
}

// follower returns how to follow a resource, if the caller may read it.
func (s *subscriptions) follower(ctx context.Context, by operation.Caller, uri string) (func(context.Context), error) {
	if id, query, ok := parts(uri, threadsURI); ok && len(query) == 0 {
		session, err := operations.GetSession.Call(ctx, s.s.o.Executor, by, operations.SessionRef{ID: id})
		if err != nil {
			return nil, s.s.unreadable(&sdk.ReadResourceRequest{Params: &sdk.ReadResourceParams{URI: uri}}, err)
		}
		return func(ctx context.Context) { s.follow(ctx, by, id, session.Seq, uri) }, nil
	}
	d, in, ok := workResource(uri)
	if !ok {
		return nil, operation.Errorf(operation.Invalid, "only threads, projects and tasks can be subscribed to: %s/ID, %s, %s/ID, %s, %s/ID", threadsURI, projectsURI, projectsURI, tasksURI, tasksURI)
	}
	read := func(ctx context.Context) (string, error) {
		out, err := s.s.o.Executor.Execute(ctx, by, d, in)
		if err != nil {
			return "", err
		}
		data, err := json.Marshal(out)
		return string(data), err
	}
	known, err := read(ctx)
	if err != nil {
		return nil, s.s.unreadable(&sdk.ReadResourceRequest{Params: &sdk.ReadResourceParams{URI: uri}}, err)
	}
	return func(ctx context.Context) { s.followWork(ctx, by, uri, known, read) }, nil
}

// workResource returns the operation that reads a resource of the work.
func workResource(uri string) (d *operation.Definition, in any, ok bool) {
	switch uri {
	case projectsURI, tasksURI:
		d = listReads()[uri]
		return d, reflect.Zero(d.In).Interface(), true
	}
	for _, one := range singles() {
		if one.uri != projectsURI && one.uri != tasksURI {
			continue
		}
		if id, query, ok := parts(uri, one.uri); ok && len(query) == 0 {
			in := reflect.New(one.get.In).Elem()
			in.Field(0).SetString(id)
			return one.get, in.Interface(), true
		}
	}
	return nil, nil, false
}

// followWork reports changes of a resource of the work until ctx ends, or it is gone. known is what the client could read when it subscribed.
func (s *subscriptions) followWork(ctx context.Context, by operation.Caller, uri, known string, read func(context.Context) (string, error)) {
	var changed <-chan struct{}
	if s.s.o.Changes != nil {
		changed = s.s.o.Changes(ctx)
	} else {
		changed = operations.WorkChanges(ctx, s.s.o.Executor, by, operations.WorkWait{})
	}
	for { // check at once: something may have changed since it was read
		now, err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && operation.KindOf(err) == operation.NotFound:
			_ = s.told().ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // it is gone, which is a change too
			return
		case err == nil && now != known:
			known = now
			_ = s.told().ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // a client that has gone needs no notice
		}
		if !await.For(ctx, betweenUpdates) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (s *subscriptions) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	s.drop(req.Session, req.Params.URI)
	return nil
}

// drop removes a client's subscription to one address, or with "" to all. A thread without subscribers is no longer followed.
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

// follow reports changes until the stream ends: journal events, not every live delta.
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
				await.Notify(changed)
			}
		}
	})
	for range changed {
		_ = s.told().ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // a client that has gone needs no notice
		await.For(ctx, betweenUpdates)
	}
}
