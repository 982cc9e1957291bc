package anthropic

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
type canned []byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(c)),
	}, nil
}

// play streams a canned body and gives its end.
func play(t testing.TB, body []byte) (done *model.Done, failed *model.Error, deltas int) {
	t.Helper()
	p := New(Options{APIKey: "test-key", HTTPClient: &http.Client{Transport: canned(body)}})
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
			continue
		}
		deltas++
	}
	if ends != 1 {
		t.Fatalf("the stream ended %d times", ends)
	}
	return done, failed, deltas
}

func events(frames ...string) []byte {
	var b strings.Builder
	for _, f := range frames {
		kind, _, _ := strings.Cut(strings.TrimPrefix(f, `{"type":"`), `"`)
		b.WriteString("event: " + kind + "\ndata: " + f + "\n\n")
	}
	return []byte(b.String())
}

func TestOddStreams(t *testing.T) {
	t.Parallel()
	const stop = `{"type":"message_stop"}`
	cases := []struct {
		name   string
		body   []byte
		blocks string // "": it fails
		stop   chat.Stop
	}{
		{"nothing", nil, "", ""},
		{"not a stream", []byte("<html>hello</html>"), "", ""},
		{"only an end", events(stop), `[]`, chat.StopEnd},
		{"unknown events", events(`{"type":"new_thing","x":1}`, stop), `[]`, chat.StopEnd},
		{"a delta of no block", events(`{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}`, stop), `[]`, chat.StopEnd},
		{"an unknown block", events(`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}`, stop), `[]`, chat.StopEnd},
		{"arguments at once", events(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{"a":1}}}`, stop), `[{"type":"tool_use","id":"t","name":"n","args":{"a":1}}]`, chat.StopTools},
		{"hidden thinking", events(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"abc"}}`, stop), `[{"type":"thinking","signature":"abc"}]`, chat.StopEnd},
		{"text in the start", events(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}`, stop), `[{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"window full", events(`{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}`, stop), `[]`, chat.StopLength},
		{"an error without an event", []byte("data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n"), "", ""},
		{"wrong types", events(`{"type":"message_start","message":3}`), "", ""},
	}
	for _, c := range cases {
		done, failed, _ := play(t, c.body)
		if c.blocks == "" {
			if failed == nil || !failed.Retryable() {
				t.Errorf("%s: %+v", c.name, done)
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

func FuzzStream(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("data: {}\n\n"))
	f.Add([]byte("event: ping\ndata: \n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"))
	f.Add(events(`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":3}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hällo"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"bash","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`))
	f.Add(events(`{"type":"content_block_start","index":-1,"content_block":{"type":"thinking","thinking":"x"}}`,
		`{"type":"content_block_delta","index":-1,"delta":{"type":"signature_delta","signature":"s"}}`, `{"type":"message_stop"}`))
	f.Add([]byte("event: error\ndata: {\"error\":{\"type\":\"rate_limit_error\",\"message\":\"m\"}}\n\n"))
	f.Add([]byte("data: {\"type\":\n"))
	f.Add([]byte(":comment\r\n\r\ndata:{\"type\":\"message_stop\"}\r\n\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		done, _, _ := play(t, body)
		if done == nil {
			return
		}
		// Whatever came can be kept and sent back.
		if _, err := done.Blocks.MarshalJSON(); err != nil {
			t.Fatalf("the answer cannot be kept: %v", err)
		}
		if m, err := model.NewMessage(model.Assistant, chat.Participant{}, done.Blocks); err != nil {
			t.Fatal(err)
		} else if _, err := (encoder{}).message(m); err != nil {
			t.Fatalf("the answer cannot be sent back: %v", err)
		}
	})
}
