package api

import (
	"context"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"chorus/internal/command"
	"chorus/internal/feed"
	"chorus/internal/transport/http/rest"
)

// span is a part of a session's journal.
type span struct {
	ID     string `path:"id" maxLen:"1024" doc:"the session's id"`
	After  int64  `query:"after" min:"0" max:"9007199254740991" doc:"only later numbers; next of the page before"`
	Before int64  `query:"before" min:"0" max:"9007199254740991" doc:"only earlier numbers, the newest of them; next of the page before where that was asked this way"`
	Limit  int    `query:"limit" min:"1" max:"500"`
}

func (s span) query() command.Span {
	return command.Span{After: s.After, Before: s.Before, Limit: s.Limit}
}

func (a *API) historyOps() []rest.Operation {
	const tag = "history"
	missing := []int{404}
	return []rest.Operation{
		rest.Raw(rest.Route{Method: "GET", Path: "/api/sessions/{id}/stream", ID: "stream", Tag: tag, Scope: readScope, Errors: missing,
			Summary: "Follow a session as server-sent events",
			Doc: "The id of an event is its number in the journal; Last-Event-ID or after goes on behind it. Several objects may have one number: " +
				"all but the last say more, and only the last has the id, so take a number's objects together. Deltas have no number: they are a preview of " +
				"run, step and attempt that begins anew at offset 0 and is replaced by assistant_message. A comment comes every 15 seconds, and bye before the server stops."},
			"text/event-stream", a.stream).Of(reflect.TypeFor[feed.Item]()),
		rest.Op(rest.Route{Method: "GET", Path: "/api/sessions/{id}/messages", ID: "messages", Tag: tag, Scope: readScope, Errors: missing,
			Summary: "Read what was said and done"}, func(ctx context.Context, in span) (command.List[feed.Item], error) {
			return a.service.Messages(ctx, by(ctx), in.ID, in.query())
		}),
		rest.Op(rest.Route{Method: "GET", Path: "/api/sessions/{id}/events", ID: "events", Tag: tag, Scope: readScope, Errors: missing,
			Summary: "Read the raw journal"}, func(ctx context.Context, in span) (command.List[command.RawEvent], error) {
			return a.service.Events(ctx, by(ctx), in.ID, in.query())
		}),
		rest.Op(rest.Route{Method: "GET", Path: "/api/sessions/{id}/requests", ID: "requests", Tag: tag, Scope: readScope, Errors: missing,
			Summary: "Read what was sent to models, and what of it was cached"}, func(ctx context.Context, in span) (command.List[command.Request], error) {
			return a.service.Requests(ctx, by(ctx), in.ID, in.query())
		}),
		rest.Raw(rest.Route{Method: "GET", Path: "/api/sessions/{id}/blobs/{hash}", ID: "blob", Tag: tag, Scope: readScope, Errors: missing,
			Summary: "Fetch a picture or file that an event names"}, "*/*", a.blob),
		rest.Op(rest.Route{Method: "GET", Path: "/api/search", ID: "search", Tag: tag, Scope: readScope,
			Summary: "Search everything that was said", Doc: "The words found stand between the characters U+0001 and U+0002.", Errors: missing}, a.search),
	}
}

// stream follows a session.
func (a *API) stream(w http.ResponseWriter, r *http.Request, in struct {
	ID     string `path:"id" maxLen:"1024" doc:"the session's id"`
	After  int64  `query:"after" min:"0" max:"9007199254740991" doc:"only later numbers"`
	LastID string `header:"Last-Event-ID" pattern:"^[0-9]{0,15}$" doc:"the last id that was seen; it counts more than after"`
}) error {
	caller := by(r.Context())
	session, err := a.service.GetSession(r.Context(), caller, in.ID)
	if err != nil {
		return err
	}
	after := in.After
	if in.LastID != "" {
		if after, err = strconv.ParseInt(in.LastID, 10, 64); err != nil {
			return command.Errorf(command.Invalid, "Last-Event-ID is no number")
		}
	}
	// Whoever has seen more than there is met another history; they go on at the end of this one.
	after = min(after, session.Seq)
	return a.hub.Serve(w, r, after, func(ctx context.Context, after int64) iter.Seq2[feed.Item, error] {
		return a.service.Watch(ctx, caller, in.ID, after)
	})
}

// pictureTypes are shown by browsers as pictures and can do nothing else.
var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// blob sends bytes that somebody else brought: no browser may take them for a page.
func (a *API) blob(w http.ResponseWriter, r *http.Request, in struct {
	ID   string `path:"id" maxLen:"1024" doc:"the session's id"`
	Hash string `path:"hash" maxLen:"128" doc:"the name of the bytes"`
}) error {
	file, err := a.service.Blob(r.Context(), by(r.Context()), in.ID, in.Hash)
	if err != nil {
		return err
	}
	defer file.Close()
	h := w.Header()
	h.Set("Content-Type", file.MediaType)
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "private, max-age=31536000, immutable") // its name is its hash
	h.Set("ETag", strconv.Quote(in.Hash))
	if !slices.Contains(pictureTypes, file.MediaType) {
		h.Set("Content-Disposition", "attachment")
	}
	if file.Size > 0 {
		h.Set("Content-Length", strconv.FormatInt(file.Size, 10))
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	return rest.Copy(w, file)
}

func (a *API) search(ctx context.Context, in struct {
	Text   string `query:"q" required:"true" minLen:"1" maxLen:"500" doc:"the words"`
	Agent  string `query:"agent" maxLen:"64"`
	Cursor string `query:"cursor" maxLen:"1024" doc:"next of the page before"`
	Limit  int    `query:"limit" min:"1" max:"100"`
}) (command.List[command.Hit], error) {
	return paged(in.Cursor, func(cursor string) (command.List[command.Hit], error) {
		return a.service.Search(ctx, by(ctx), command.SearchQuery{Text: in.Text, Agent: in.Agent, Cursor: cursor, Limit: in.Limit})
	})
}
