package mcp

import (
	"context"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxWatched limits how many resources of one server are watched: each may be mentioned in every request.
const maxWatched = 50

// ChangedResource is a resource that an agent wanted to be told about
// and that has changed since the agent read it.
type ChangedResource struct{ Server, URI string }

// watchResource starts or stops watching a resource and returns the outcome.
func (s *server) watchResource(ctx context.Context, l *live, uri string, on bool) string {
	caps := l.session.InitializeResult().Capabilities
	switch {
	case !on:
		s.mu.Lock()
		delete(s.watching, uri)
		s.mu.Unlock()
		_ = l.session.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: uri}) // later messages about it are ignored
		return "it is no longer watched"
	case caps == nil || caps.Resources == nil || !caps.Resources.Subscribe:
		return "it cannot be watched: the server does not report changes"
	}
	s.mu.Lock()
	_, again := s.watching[uri]
	full := !again && len(s.watching) >= maxWatched
	if !full {
		s.watching[uri] = false // before the server is asked, so that none of its messages is missed
	}
	s.mu.Unlock()
	if full {
		return "it is not watched: there are too many already"
	}
	if err := l.session.Subscribe(ctx, &sdk.SubscribeParams{URI: uri}); err != nil {
		s.mu.Lock()
		delete(s.watching, uri)
		s.mu.Unlock()
		return "it cannot be watched: " + printable(l.explain(err).Error(), 200)
	}
	return "you will be told when it changes"
}

// rewatch asks a restarted server to report changes as before. What happened
// meanwhile is not known, so the resources count as changed.
func (s *server) rewatch(ctx context.Context, l *live) {
	s.mu.Lock()
	uris := slices.Sorted(maps.Keys(s.watching))
	s.mu.Unlock()
	for _, uri := range uris {
		if l.session.Subscribe(ctx, &sdk.SubscribeParams{URI: uri}) == nil {
			s.resourceChanged(uri)
		}
	}
}

// resourceChanged handles a message that a resource, or a part of one, has changed.
func (s *server) resourceChanged(uri string) {
	s.set(func() {
		for watched := range s.watching {
			if uri == watched || strings.HasPrefix(uri, strings.TrimSuffix(watched, "/")+"/") {
				s.watching[watched] = true
			}
		}
	})
}

// resourceRead records that an agent has read the current version of a resource.
func (s *server) resourceRead(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.watching[uri]; ok {
		s.watching[uri] = false
	}
}

// ChangedResources returns the watched resources that have changed since they were read, sorted.
func (h *Hub) ChangedResources() (out []ChangedResource) {
	for _, s := range h.servers {
		s.mu.Lock()
		for _, uri := range slices.Sorted(maps.Keys(s.watching)) {
			if s.watching[uri] {
				out = append(out, ChangedResource{s.Name, printable(uri, 500)})
			}
		}
		s.mu.Unlock()
	}
	return out
}
