package ollama

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// canned answers every request with the same body.
type canned struct {
	status int
	body   []byte
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/x-ndjson"}}, Body: io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

// play streams a canned body and gives its end.
func play(t testing.TB, status int, body []byte) (done *model.Done, failed *model.Error) {
	t.Helper()
	p := New(Options{HTTPClient: &http.Client{Transport: canned{status, body}}})
	ends := 0
	for c, err := range p.Stream(context.Background(), model.Prepared{Model: "m", Body: []byte(`{}`)}) {
		if err != nil {
			ends++
			if !errors.As(err, &failed) {
				t.Fatalf("%T is not an *Error", err)
			}
			continue
		}
		if d, ok := c.(model.Done); ok {
			ends++
			done = &d
		}
	}
	if ends != 1 {
		t.Fatalf("the stream ended %d times", ends)
	}
	return done, failed
}

func lines(all ...string) []byte { return []byte(strings.Join(all, "\n") + "\n") }

// said is a line with a message.
func said(message string) string { return `{"created_at":"x","message":` + message + `,"done":false}` }

const fin = `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":3}`

func TestOddStreams(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		body   []byte
		blocks string // "": it fails
		stop   chat.Stop
	}{
		{"nothing", nil, "", ""},
		{"not a stream", []byte("<html>"), "", ""},
		{"only an end", lines(fin), `[]`, chat.StopEnd},
		{"an end without a line's end", []byte(fin), `[]`, chat.StopEnd},
		{"no end", lines(said(`{"content":"hi"}`)), "", ""},
		{"empty lines", lines("", said(`{"content":"hi"}`), "\r", fin), `[{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"all in one", lines(`{"message":{"content":"hi","thinking":"hm","tool_calls":[{"function":{"name":"n","arguments":{"a": 1}}}]},"done":true,"done_reason":"stop"}`),
			`[{"type":"thinking","text":"hm"},{"type":"text","text":"hi"},{"type":"tool_use","id":"call_08f44b07b5901a25_1","name":"n","args":{"a":1}}]`, chat.StopTools},
		{"more behind the end", lines(said(`{"content":"a"}`), fin, said(`{"content":"b"}`)), `[{"type":"text","text":"a"}]`, chat.StopEnd},
		{"thoughts in between", lines(said(`{"thinking":"a"}`), said(`{"content":"b"}`), said(`{"thinking":"c"}`), said(`{"thinking":"d"}`), fin),
			`[{"type":"thinking","text":"a"},{"type":"text","text":"b"},{"type":"thinking","text":"cd"}]`, chat.StopEnd},
		{"text behind a call", lines(said(`{"content":"a","tool_calls":[{"id":"c","function":{"name":"n"}}]}`), said(`{"content":"b"}`), fin),
			`[{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"n","args":{}},{"type":"text","text":"b"}]`, chat.StopTools},
		{"one id twice", lines(said(`{"tool_calls":[{"id":"c","function":{"name":"n"}},{"id":"c","function":{"name":"n","arguments":null}}]}`), fin),
			`[{"type":"tool_use","id":"c","name":"n","args":{}},{"type":"tool_use","id":"call_08f44b07b5901a25_2","name":"n","args":{}}]`, chat.StopTools},
		{"too long", lines(said(`{"content":"a"}`), strings.Replace(fin, `"stop"`, `"length"`, 1)), `[{"type":"text","text":"a"}]`, chat.StopLength},
		{"only loaded", lines(strings.Replace(fin, `"stop"`, `"load"`, 1)), `[]`, chat.StopEnd},
		{"an old server that gives no reason", lines(`{"done":true}`), `[]`, chat.StopEnd},
		{"an error", lines(said(`{"content":"a"}`), `{"error":"an error was encountered while running the model: unexpected EOF"}`), "", ""},
		{"an error as an object", lines(`{"error":{"message":"oh"}}`), "", ""},
		{"wrong types", lines(`{"message":[]}`), "", ""},
	}
	for _, c := range cases {
		done, failed := play(t, 200, c.body)
		if c.blocks == "" {
			if failed == nil || !failed.Retryable() || failed.Message == "" {
				t.Errorf("%s: %+v, %v", c.name, done, failed)
			}
			continue
		}
		if failed != nil {
			t.Errorf("%s: %v", c.name, failed)
			continue
		}
		if done.Blocks == nil {
			done.Blocks = chat.Blocks{}
		}
		if got, _ := done.Blocks.MarshalJSON(); string(got) != c.blocks || done.Stop != c.stop {
			t.Errorf("%s: %s, stop %s", c.name, got, done.Stop)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		kind   model.ErrorKind
	}{
		{400, `{"error":"registry.ollama.ai/library/gemma:2b does not support tools"}`, model.BadRequest},
		{400, `{"error":"the input length exceeds the context length"}`, model.TooLong},
		{200, `{"error":"the input length exceeds the context length"}`, model.TooLong},
		{503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, model.Overloaded},
		{500, `{"error":"llama runner process has terminated: exit status 2"}`, model.Overloaded},
		{401, `{"error":"unauthorized"}`, model.Auth},
		{404, "404 page not found", model.BadRequest},
	} {
		if _, failed := play(t, c.status, []byte(c.body)); failed == nil || failed.Kind != c.kind {
			t.Errorf("%d %s: %+v", c.status, c.body, failed)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(""))
	f.Add(lines(fin))
	f.Add(lines(said(`{"role":"assistant","content":"hällo","thinking":"hm"}`), fin))
	f.Add(lines(said(`{"tool_calls":[{"function":{"name":"n","arguments":{"a":[1]}}},{"id":"c","function":{"name":"m"}}]}`), fin))
	f.Add(lines(`{"error":"oh"}`))
	f.Add([]byte(`{"message":{"content":"a`))
	f.Add(lines("", "\r", `{"done":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		done, failed := play(t, 200, body)
		if done == nil {
			if failed.Kind == "" || failed.Provider != provider {
				t.Fatalf("an odd error: %+v", failed)
			}
			return
		}
		// Whatever came can be kept and sent back, and no call shares its id.
		if _, err := done.Blocks.MarshalJSON(); err != nil {
			t.Fatalf("the answer cannot be kept: %v", err)
		}
		ids := map[string]bool{}
		for _, c := range done.Blocks.Calls() {
			if ids[c.ID] || c.ID == "" {
				t.Fatalf("the id %q names two calls", c.ID)
			}
			ids[c.ID] = true
		}
		m, err := model.NewMessage(model.Assistant, chat.Participant{}, done.Blocks)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (encoder{}).message(m); err != nil {
			t.Fatalf("the answer cannot be sent back: %v", err)
		}
	})
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"", "box", "box:1", "http://box", "https://[::1]:1/x", ":", "://", "[", "a:b:c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Host(s)
		if !strings.Contains(got, "://") || strings.HasSuffix(got, "/") {
			t.Fatalf("Host(%q) = %q", s, got)
		}
	})
}
