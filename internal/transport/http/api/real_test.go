package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/store/storetest"
	"chorus/internal/transport/http/api"
)

// owner may everything.
var owner = operation.Caller{Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada", Name: "Ada"}, Scopes: operation.Scopes()}

// realServer is the API on a home of its own, with the offline model.
func realServer(t testing.TB) (*api.API, *httptest.Server) {
	t.Helper()
	home, err := app.Open(t.Context(), app.Options{Home: storetest.FreshHome(t), Env: func(string) string { return "" }, Environ: []string{"PATH=/usr/bin:/bin"},
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := api.New(api.Options{Executor: home.Service.Operations(), Memory: home.DB, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.ServeHTTP(w, r.WithContext(operation.WithCaller(r.Context(), owner)))
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := a.Drain(ctx); err != nil {
			t.Error(err)
		}
		server.Close()
		if err := home.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return a, server
}

// post sends JSON and gives the answer's.
func post(t testing.TB, url, body string, want int) map[string]any {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		t.Fatalf("%s: %s, %v: %s", url, res.Status, err, data)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// sse is one connection to a stream.
type sse struct {
	body  io.Closer
	lines *bufio.Scanner
}

func follow(t *testing.T, url, lastID string) *sse {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return &sse{res.Body, lines}
}

// next is the next object, with its id.
func (s *sse) next() (id, data string, err error) {
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			data = value
		case "":
			if data != "" {
				return id, data, nil
			}
		}
	}
	return "", "", errors.Join(s.lines.Err(), io.ErrUnexpectedEOF)
}

// follower takes a number's objects together, as a client should.
type follower struct {
	lastID      string
	whole, part []string
	run         bool // it has ended
	calls       []string
	preview     string
	attempts    map[string]bool
}

func (f *follower) take(id, data string) error {
	item, err := feed.Parse([]byte(data))
	if err != nil {
		return err
	}
	switch it := item.(type) {
	case feed.TextDelta:
		if it.Offset == 0 {
			f.preview = ""
		}
		if it.Offset != len(f.preview) {
			return fmt.Errorf("a piece at %d follows %q", it.Offset, f.preview)
		}
		f.preview += it.Text
	case feed.AssistantMessage:
		if !strings.HasPrefix(it.Text, f.preview) && f.preview != "" {
			return fmt.Errorf("%q became %q", f.preview, it.Text)
		}
		f.preview = ""
	case feed.ApprovalRequired:
		f.calls = append(f.calls, it.CallID)
	case feed.Trace:
		if f.attempts == nil {
			f.attempts = map[string]bool{}
		}
		f.attempts[it.Kind] = true
		if it.Kind == "error" {
			f.preview = ""
		}
	case feed.Completed, feed.Error:
		f.run = true
	}
	if item.Header().Seq == 0 {
		return nil
	}
	f.part = append(f.part, data)
	if id != "" {
		f.lastID, f.whole, f.part = id, append(f.whole, f.part...), nil
	}
	return nil
}

const errand = "```demo\n" + `chunk 4
say this is lost on the way
fail overloaded retry-after 1ms once
say I look around before I do anything
call list_files {"path":"."}
call bash {"command":"echo hello"}
---
say all is well
` + "```"

// cutRun follows one run, cuts the connection after so many objects, and comes back.
// It gives what it saw, and what somebody sees who was never cut.
func cutRun(t *testing.T, url string, cut int) (got, want follower) {
	t.Helper()
	session, _ := post(t, url+"/api/sessions", `{"sandbox":"host"}`, 201)["sessionId"].(string)
	at := url + "/api/sessions/" + session
	c := follow(t, at+"/stream", "")
	// The model fails once for each request; so each run says something else.
	message, _ := json.Marshal(map[string]string{"message": fmt.Sprintf("Errand %d.\n%s", cut, errand)})
	post(t, at+"/chat", string(message), 202)
	answered, objects := 0, 0
	for !got.run {
		id, data, err := c.next()
		if err == nil {
			err = got.take(id, data)
		}
		if err != nil {
			t.Fatalf("cut at %d, after %d objects: %v", cut, objects, err)
		}
		if objects++; objects == cut {
			c.body.Close()
			got.part, got.preview = nil, ""
			c = follow(t, at+"/stream", got.lastID)
		}
		for ; answered < len(got.calls) && len(got.part) == 0; answered++ {
			if !slices.Contains(got.calls[:answered], got.calls[answered]) {
				post(t, at+"/approvals/"+got.calls[answered], `{"approved":true}`, 200)
			}
		}
	}
	c.body.Close()
	c = follow(t, at+"/stream", "")
	defer c.body.Close()
	for !want.run {
		id, data, err := c.next()
		if err == nil {
			err = want.take(id, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return got, want
}

func TestCutAtEveryEventOfARealRun(t *testing.T) {
	t.Parallel()
	_, server := realServer(t)
	first, want := cutRun(t, server.URL, -1)
	if !slices.Equal(first.whole, want.whole) || len(want.whole) < 19 {
		t.Fatalf("the run is not what it should be:\n%s", strings.Join(want.whole, "\n"))
	}
	// With its pieces the run has some fifty objects; a reader that comes late gets several pieces as one.
	for cut := 1; cut <= 51; cut++ {
		got, want := cutRun(t, server.URL, cut)
		if !slices.Equal(got.whole, want.whole) || !want.attempts["error"] || len(want.calls) != 1 {
			t.Fatalf("cut at %d:\n%s\nwant\n%s", cut, strings.Join(got.whole, "\n"), strings.Join(want.whole, "\n"))
		}
	}
}

// The real service keeps the document's word too.
func TestEveryOperationOfTheRealService(t *testing.T) {
	t.Parallel()
	a, server := realServer(t)
	session, _ := post(t, server.URL+"/api/sessions", `{}`, 201)["sessionId"].(string)
	doc := document(t, a)
	answers := answerSchema(t, doc)
	for path, methods := range served(doc) {
		for method, op := range methods {
			switch op.OperationID {
			case "stream", "waitForWork", "health": // one does not end, one waits for up to a minute, one looks at the whole machine
				continue
			}
			for seed := range 8 { // a real service takes its time
				err := rapid.Custom(func(rt *rapid.T) error {
					g := generator{rt, doc}
					id := rapid.SampledFrom([]string{session, "{id}"}).Draw(rt, "session")
					r := g.request(strings.ReplaceAll(path, "/sessions/{id}", "/sessions/"+id), method, op)
					body, err := keepsItsWord(a, op, r, false)
					if err == nil && body != nil {
						err = answers.Validate(map[string]any{op.OperationID: body})
					}
					return err
				}).Example(seed)
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
}
