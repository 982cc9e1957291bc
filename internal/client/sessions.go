package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"chorus/internal/command"
	"chorus/internal/feed"
)

// The largest pages that the server gives.
const (
	maxSpan    = 500
	maxPage    = 200
	maxHits    = 100
	uploadTime = 10 * time.Minute
)

// values are the parts of a query that are not empty.
func values(pairs ...string) url.Values {
	out := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out.Set(pairs[i], pairs[i+1])
		}
	}
	return out
}

// number is a number of a query; 0 is left out.
func number[T int | int64](n T) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

func span(q command.Span) url.Values {
	return values("after", number(q.After), "before", number(q.Before), "limit", number(min(q.Limit, maxSpan)))
}

type made struct {
	Session command.Session `json:"session"`
}

// CreateSession implements command.Sessions.
func (c *Client) CreateSession(ctx context.Context, _ command.Caller, in command.NewSession) (command.Session, error) {
	var out made
	if len(in.History) > 0 {
		return out.Session, command.Errorf(command.Invalid, "what was said elsewhere cannot be sent along; begin the session without it")
	}
	_, err := c.call(ctx, order{method: http.MethodPost, path: []string{"api", "sessions"}, body: in, key: in.Key}, &out)
	return out.Session, err
}

// ListSessions implements command.Sessions.
func (c *Client) ListSessions(ctx context.Context, _ command.Caller, q command.SessionQuery) (command.List[command.Session], error) {
	return get[command.List[command.Session]](ctx, c, values("status", q.Status, "agent", q.Agent, "search", q.Search, "cursor", q.Cursor,
		"limit", number(min(q.Limit, maxPage))), "api", "sessions")
}

// GetSession implements command.Sessions.
func (c *Client) GetSession(ctx context.Context, _ command.Caller, id string) (command.Session, error) {
	return get[command.Session](ctx, c, nil, "api", "sessions", id)
}

// Say implements command.Sessions.
func (c *Client) Say(ctx context.Context, _ command.Caller, id string, in command.Words) (command.Said, error) {
	in.Mode = "" // only a steer has one
	return c.words(ctx, id, "chat", in)
}

// Steer implements command.Sessions.
func (c *Client) Steer(ctx context.Context, _ command.Caller, id string, in command.Words) (command.Said, error) {
	return c.words(ctx, id, "steer", in)
}

func (c *Client) words(ctx context.Context, id, how string, in command.Words) (command.Said, error) {
	var out command.Said
	again, err := c.call(ctx, order{method: http.MethodPost, path: []string{"api", "sessions", id, how}, body: in, key: in.Key}, &out)
	out.Again = out.Again || again
	return out, err
}

// Abort implements command.Sessions.
func (c *Client) Abort(ctx context.Context, _ command.Caller, id string, all bool) (bool, error) {
	var out struct {
		Aborted bool `json:"aborted"`
	}
	_, err := c.call(ctx, order{method: http.MethodPost, path: []string{"api", "sessions", id, "abort"}, body: map[string]bool{"all": all}}, &out)
	return out.Aborted, err
}

// ResumeSession implements command.Sessions.
func (c *Client) ResumeSession(ctx context.Context, _ command.Caller, id string, in command.Resume) (command.Session, error) {
	var out made
	_, err := c.call(ctx, order{method: http.MethodPost, path: []string{"api", "sessions", id, "resume"}, body: in}, &out)
	return out.Session, err
}

// Fork implements command.Sessions.
func (c *Client) Fork(ctx context.Context, _ command.Caller, id string, atSeq int64) (command.Session, error) {
	var out made
	_, err := c.call(ctx, order{method: http.MethodPost, path: []string{"api", "sessions", id, "fork"}, body: map[string]int64{"atSeq": atSeq}}, &out)
	return out.Session, err
}

// Events implements command.Sessions.
func (c *Client) Events(ctx context.Context, _ command.Caller, id string, q command.Span) (command.List[command.RawEvent], error) {
	return get[command.List[command.RawEvent]](ctx, c, span(q), "api", "sessions", id, "events")
}

// Messages implements command.Sessions.
func (c *Client) Messages(ctx context.Context, _ command.Caller, id string, q command.Span) (command.List[feed.Item], error) {
	raw, err := get[command.List[json.RawMessage]](ctx, c, span(q), "api", "sessions", id, "messages")
	out := command.List[feed.Item]{Next: raw.Next}
	if err != nil {
		return out, err
	}
	for _, data := range raw.Items {
		item, err := feed.Parse(data)
		switch {
		case errors.Is(err, feed.ErrUnknownType): // of a newer Chorus
		case err != nil:
			return out, command.Errorf(command.Failed, "the server sent a message that cannot be read: %w", err)
		default:
			out.Items = append(out.Items, item)
		}
	}
	return out, nil
}

// Requests implements command.Sessions.
func (c *Client) Requests(ctx context.Context, _ command.Caller, id string, q command.Span) (command.List[command.Request], error) {
	return get[command.List[command.Request]](ctx, c, span(q), "api", "sessions", id, "requests")
}

// Attach implements command.Sessions.
func (c *Client) Attach(ctx context.Context, _ command.Caller, id, name string, body io.Reader) (command.Attachment, error) {
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	var out command.Attachment
	res, err := c.send(ctx, order{method: http.MethodPost, path: []string{"api", "sessions", id, "attachments"}, query: values("name", name), stream: body})
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxProblem)).Decode(&out); err != nil {
		return out, c.unreached(ctx, err)
	}
	return out, nil
}

// Blob implements command.Sessions. The file must be closed; its reading ends with ctx.
func (c *Client) Blob(ctx context.Context, _ command.Caller, id, hash string) (command.File, error) {
	res, err := c.send(ctx, order{method: http.MethodGet, path: []string{"api", "sessions", id, "blobs", hash}})
	if err != nil {
		return command.File{}, err
	}
	return command.File{ReadCloser: res.Body, MediaType: res.Header.Get("Content-Type"), Size: res.ContentLength}, nil
}

// Search implements command.Sessions.
func (c *Client) Search(ctx context.Context, _ command.Caller, q command.SearchQuery) (command.List[command.Hit], error) {
	return get[command.List[command.Hit]](ctx, c, values("q", q.Text, "agent", q.Agent, "cursor", q.Cursor, "limit", number(min(q.Limit, maxHits))), "api", "search")
}
