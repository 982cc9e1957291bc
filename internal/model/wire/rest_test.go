package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/model"
)

// tripper answers without a network.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func replies(status int, body string) tripper {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Retry-After": {"3"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	}
}

func rest(f tripper) Rest {
	return Rest{Client: &http.Client{Transport: f}, Header: http.Header{"X-Key": {"k"}}, Side: Side{Provider: "p", Model: "m"}}
}

func TestRest(t *testing.T) {
	t.Parallel()
	broken := errors.New("no route")
	cases := []struct {
		name string
		rest Rest
		url  string
		want model.ErrorKind
	}{
		{"fine", rest(replies(200, `{"a":1}`)), "http://x/", ""},
		{"not JSON", rest(replies(200, `{"a":`)), "http://x/", model.Network},
		{"a status", rest(replies(401, `{"error":"no"}`)), "http://x/", model.Auth},
		{"moved", rest(replies(304, ``)), "http://x/", model.BadRequest},
		{"no address", rest(replies(200, ``)), "http://[", model.BadRequest},
		{"no connection", rest(func(*http.Request) (*http.Response, error) { return nil, broken }), "http://x/", model.Network},
	}
	for _, c := range cases {
		call := Watch(t.Context(), 0, 0)
		var got struct{ A int }
		failed := c.rest.Get(call, c.url, "the thing", &got)
		_ = call.Close()
		switch {
		case c.want == "" && (failed != nil || got.A != 1):
			t.Errorf("%s: %v, %+v", c.name, failed, got)
		case c.want != "" && (failed == nil || failed.Kind != c.want || failed.Provider != "p"):
			t.Errorf("%s: %+v", c.name, failed)
		case c.name == "no connection" && !errors.Is(failed, broken):
			t.Errorf("the cause is lost: %v", failed)
		}
	}
}

func TestRestPosts(t *testing.T) {
	t.Parallel()
	var seen *http.Request
	var sent []byte
	r := rest(func(q *http.Request) (*http.Response, error) {
		seen = q
		sent, _ = io.ReadAll(q.Body)
		return replies(429, "busy")(q)
	})
	r.Refused = func(status int, h http.Header, body []byte) *model.Error {
		return &model.Error{Kind: model.Refused, Status: status, Message: string(body) + h.Get("Retry-After")}
	}
	call := Watch(t.Context(), 0, 0)
	defer func() { _ = call.Close() }()
	_, failed := r.Post(call, "http://x/y", []byte("{}"))
	if failed == nil || failed.Kind != model.Refused || failed.Status != 429 || failed.Message != "busy3" {
		t.Errorf("got %+v", failed)
	}
	if seen.Method != "POST" || seen.Header.Get("X-Key") != "k" || seen.Header.Get("Content-Type") != "application/json" || string(sent) != "{}" {
		t.Errorf("sent %s %v %s", seen.Method, seen.Header, sent)
	}
}

func TestRestIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("somebody left")
	r := rest(func(q *http.Request) (*http.Response, error) {
		cancel(why)
		return replies(500, "busy")(q)
	})
	call := Watch(ctx, 0, 0)
	defer func() { _ = call.Close() }()
	if _, failed := r.Post(call, "http://x/", nil); failed == nil || !errors.Is(failed, why) {
		t.Errorf("got %+v", failed)
	}
}

func TestAnEndIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		call, res := watch(t, 0, time.Minute, 10*time.Second, 5)
		if _, err := io.ReadFull(res.Body, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		call.Ending()
		if _, err := io.ReadAll(res.Body); err == nil || time.Since(start) != endTime {
			t.Errorf("took %s, %v", time.Since(start), err)
		}
		_ = call.Close()
	})
}

func TestLinesTakeWhatComes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	s := Lines(strings.NewReader("a\r\n\n" + long + "\nlast"))
	var got []int
	for s.Scan() {
		got = append(got, len(s.Bytes()))
	}
	if s.Err() != nil || len(got) != 4 || got[0] != 1 || got[1] != 0 || got[2] != len(long) || got[3] != 4 {
		t.Errorf("lines of %v, %v", got, s.Err())
	}
}

func TestCallIDsAreStable(t *testing.T) {
	t.Parallel()
	a, b := []byte("a"), []byte("b")
	if CallID(a, 1) != CallID(bytes.Clone(a), 1) || CallID(a, 1) == CallID(a, 2) || CallID(a, 1) == CallID(b, 1) {
		t.Errorf("%s %s %s", CallID(a, 1), CallID(a, 2), CallID(b, 1))
	}
}

// What a request says of itself, and that whoever configures headers has the last word.
func TestRestHeaders(t *testing.T) {
	t.Parallel()
	var got http.Header
	seen := func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return replies(200, `{}`)(r)
	}
	for given, want := range map[string]string{"": "Chorus", "proxy/1": "proxy/1"} {
		r := rest(seen)
		if given != "" {
			r.Header.Set("User-Agent", given)
		}
		call := Watch(t.Context(), 0, 0)
		if _, failed := r.Post(call, "http://x/", []byte("{}")); failed != nil {
			t.Fatal(failed)
		}
		_ = call.Close()
		if got.Get("User-Agent") != want || got.Get("X-Key") != "k" || got.Get("Content-Type") != "application/json" {
			t.Errorf("sent %v, want %s", got, want)
		}
	}
}
