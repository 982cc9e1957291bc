package google

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

	"chorus/internal/chat"
	"chorus/internal/model"
)

func answered(r *http.Request, status int, kind string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// canned answers every request with the same body.
type canned struct {
	status int
	body   []byte
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return answered(r, c.status, "text/event-stream", c.body), nil
}

// play streams a canned body and gives its end.
func play(t testing.TB, status int, body []byte) (done *model.Done, failed *model.Error) {
	t.Helper()
	p := New(Options{APIKey: "test-key", HTTPClient: &http.Client{Transport: canned{status, body}}})
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

func frames(data ...string) []byte {
	return []byte("data: " + strings.Join(data, "\r\n\r\ndata: ") + "\r\n\r\n")
}

// parts is a chunk with these parts.
func parts(p string) string {
	return `{"responseId":"x","candidates":[{"index":0,"content":{"role":"model","parts":[` + p + `]}}]}`
}

func finish(reason string) string {
	return `{"candidates":[{"content":{},"finishReason":"` + reason + `","finishMessage":"because"}]}`
}

func TestOddStreams(t *testing.T) {
	t.Parallel()
	fin := finish("STOP")
	cases := []struct {
		name   string
		body   []byte
		blocks string // "": it fails
		stop   chat.Stop
	}{
		{"nothing", nil, "", ""},
		{"not a stream", []byte(`{"candidates":[]}`), "", ""},
		{"only an end", frames(fin), `[]`, chat.StopEnd},
		{"no end", frames(parts(`{"text":"hi"}`)), "", ""},
		{"no empty line at the end", []byte("data: " + parts(`{"text":"hi"}`) + "\n\ndata: " + fin), `[{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"comments and names", append([]byte(": c\n\nevent: x\nid: 1\nretry: 5\n\n"), frames(parts(`{"text":"hi"}`), fin)...), `[{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"an event in two lines", []byte("data: {\"candidates\":\ndata: []}\n\ndata: " + fin + "\n\n"), `[]`, chat.StopEnd},
		{"other candidates", frames(`{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]}}]}`, fin), `[]`, chat.StopEnd},
		{"several parts at once", frames(parts(`{"text":"hm","thought":true},{"text":"a"},{"functionCall":{"name":"n","args":{"a": 1}}},{"functionCall":{"name":"m"}}`), fin),
			`[{"type":"thinking","text":"hm"},{"type":"text","text":"a"},{"type":"tool_use","id":"call_08f44b07b5901a25_1","name":"n","args":{"a":1}},{"type":"tool_use","id":"call_08f44b07b5901a25_2","name":"m","args":{}}]`, chat.StopTools},
		{"one id twice", frames(parts(`{"functionCall":{"id":"c","name":"n"}},{"functionCall":{"id":"c","name":"n","args":null}}`), fin),
			`[{"type":"tool_use","id":"c","name":"n","args":{}},{"type":"tool_use","id":"call_08f44b07b5901a25_2","name":"n","args":{}}]`, chat.StopTools},
		{"parts we do not know", frames(parts(`{"executableCode":{"code":"1"}},{"text":"a"}`), fin), `[{"type":"text","text":"a"}]`, chat.StopEnd},
		{"too long", frames(parts(`{"text":"a"}`), finish("MAX_TOKENS")), `[{"type":"text","text":"a"}]`, chat.StopLength},
		{"refused", frames(parts(`{"text":"a"}`), finish("PROHIBITED_CONTENT")), `[{"type":"text","text":"a"}]`, chat.StopRefused},
		{"recited", frames(finish("RECITATION")), `[]`, chat.StopRefused},
		{"a finish of tomorrow", frames(parts(`{"text":"a"}`), finish("BORED")), `[{"type":"text","text":"a"}]`, chat.StopEnd},
		{"a call that could not be read", frames(finish("MALFORMED_FUNCTION_CALL")), "", ""},
		{"a bare error between events", append(frames(parts(`{"text":"a"}`)), "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"overloaded\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n"...), "", ""},
		{"a list with an error", []byte(`[{"error":{"code":500,"message":"oh","status":"INTERNAL"}}]`), "", ""},
		{"wrong types", frames(`{"candidates":{}}`), "", ""},
	}
	for _, c := range cases {
		done, failed := play(t, 200, c.body)
		if c.blocks == "" {
			if failed == nil || !failed.Retryable() {
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

// endless is a stream that never closes behind its last frame.
type endless struct{}

func (endless) RoundTrip(r *http.Request) (*http.Response, error) {
	res := answered(r, 200, "text/event-stream", nil)
	res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(frames(parts(`{"text":"hi"}`), finish("STOP"))), silent{r.Context()}))
	return res, nil
}

// silent gives nothing until its context ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func TestAWholeAnswerDoesNotWaitForTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{APIKey: "test-key", HTTPClient: &http.Client{Transport: endless{}}})
		start := time.Now()
		for c, err := range p.Stream(t.Context(), model.Prepared{Model: "m"}) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := c.(model.Done); ok && d.Blocks.Text() != "hi" {
				t.Errorf("got %+v", d)
			}
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestSignaturesStayWithTheirParts(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, parts, blocks, back string }{
		{"of the first call", `{"text":"hm","thought":true},{"text":"see"},{"functionCall":{"id":"1","name":"n"},"thoughtSignature":"QQ=="},{"functionCall":{"id":"2","name":"m"}}`,
			`[{"type":"thinking","text":"hm"},{"type":"text","text":"see"},{"type":"tool_use","id":"1","name":"n","args":{},"signature":"QQ=="},{"type":"tool_use","id":"2","name":"m","args":{}}]`,
			`{"text":"see"},{"functionCall":{"id":"1","name":"n","args":{}},"thoughtSignature":"QQ=="},{"functionCall":{"id":"2","name":"m","args":{}}}`},
		{"at the end of a text", `{"text":"a"},{"text":"b"},{"text":"","thoughtSignature":"QQ=="}`,
			`[{"type":"text","text":"ab","signature":"QQ=="}]`, `{"text":"ab","thoughtSignature":"QQ=="}`},
		{"of a text in the middle", `{"text":"a","thoughtSignature":"QQ=="},{"text":"b"}`,
			`[{"type":"text","text":"a","signature":"QQ=="},{"type":"text","text":"b"}]`, `{"text":"a","thoughtSignature":"QQ=="},{"text":"b"}`},
		{"of nothing", `{"text":"","thoughtSignature":"QQ=="}`, `[{"type":"text","text":"","signature":"QQ=="}]`, `{"text":"","thoughtSignature":"QQ=="}`},
		{"of a thought", `{"text":"hm","thought":true,"thoughtSignature":"QQ=="},{"text":"a"}`,
			`[{"type":"thinking","text":"hm"},{"type":"text","text":"","signature":"QQ=="},{"type":"text","text":"a"}]`, `{"text":"","thoughtSignature":"QQ=="},{"text":"a"}`},
	}
	for _, c := range cases {
		done, failed := play(t, 200, frames(parts(c.parts), finish("STOP")))
		if failed != nil {
			t.Fatalf("%s: %v", c.name, failed)
		}
		if got, _ := done.Blocks.MarshalJSON(); string(got) != c.blocks {
			t.Errorf("%s: %s", c.name, got)
		}
		if back, err := (encoder{}).answer(done.Blocks); err != nil || string(back) != modelOpen+c.back+closing {
			t.Errorf("%s: sent back %s, %v", c.name, back, err)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]chat.Usage{
		`{"promptTokenCount":100,"candidatesTokenCount":5}`:                                                                   {Input: 100, Output: 5},
		`{"promptTokenCount":100,"candidatesTokenCount":5,"thoughtsTokenCount":40,"cachedContentTokenCount":60}`:              {Input: 40, Output: 45, CacheRead: 60},
		`{"promptTokenCount":100,"toolUsePromptTokenCount":7,"candidatesTokenCount":-1,"promptTokensDetails":[{"x":"TEXT"}]}`: {Input: 107},
		`{"promptTokenCount":10,"cachedContentTokenCount":60}`:                                                                {CacheRead: 60},
	} {
		done, failed := play(t, 200, frames(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":`+usage+`}`))
		if failed != nil || done.Usage != want {
			t.Errorf("%s: %+v, %v", usage, done, failed)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	quota := `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota, please check your plan and billing details.","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"x"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`
	invalid := `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid. Please pass a valid API key.","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`
	long := `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}`
	cases := []struct {
		name   string
		status int
		body   string
		kind   model.ErrorKind
		wait   time.Duration
	}{
		{"a rate limit in the words of a quota", 429, quota, model.RateLimited, 34500 * time.Millisecond},
		{"the same in the stream", 200, string(frames(quota)), model.RateLimited, 34500 * time.Millisecond},
		{"the same as a list", 429, "[" + quota + "]", model.RateLimited, 34500 * time.Millisecond},
		{"a quota without an end", 429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota."}}`, model.Auth, 0},
		{"a wait beyond belief", 503, `{"error":{"code":503,"status":"UNAVAILABLE","message":"busy","details":[{"retryDelay":"999999s"}]}}`, model.Overloaded, 24 * time.Hour},
		{"a wait that is none", 503, `{"error":{"code":503,"status":"UNAVAILABLE","message":"busy","details":[{"retryDelay":"soon"}]}}`, model.Overloaded, 0},
		{"a wrong key", 400, invalid, model.Auth, 0},
		{"no right", 403, `{"error":{"code":403,"status":"PERMISSION_DENIED","message":"no"}}`, model.Auth, 0},
		{"too long", 400, long, model.TooLong, 0},
		{"too long in the stream", 200, string(frames(long)), model.TooLong, 0},
		{"a blocked prompt", 200, string(frames(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":4}}`)), model.Refused, 0},
		{"an error without a body", 200, string(frames(`{"error":{}}`)), model.Overloaded, 0},
		{"an error that is no object", 200, string(frames(`{"error":"oh"}`)), model.Overloaded, 0},
	}
	for _, c := range cases {
		_, failed := play(t, c.status, []byte(c.body))
		if failed == nil || failed.Kind != c.kind || failed.RetryAfter != c.wait || failed.Message == "" {
			t.Errorf("%s: %+v", c.name, failed)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(""))
	f.Add(frames(finish("STOP")))
	f.Add(frames(parts(`{"text":"hällo"},{"text":"hm","thought":true}`), parts(`{"functionCall":{"name":"n","args":{"a":[1]}},"thoughtSignature":"QQ=="}`), finish("STOP")))
	f.Add(frames(parts(`{"text":"","thoughtSignature":"QQ=="}`), finish("MAX_TOKENS")))
	f.Add(frames(`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"3s"}]}}`))
	f.Add(frames(`{"promptFeedback":{"blockReason":"SAFETY"}}`))
	f.Add([]byte("{\n\"error\":{\"message\":\"m\"}}\n"))
	f.Add([]byte(":c\n\ndata:{\"candidates\":[\ndata:]}\n\n"))
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
		if _, err := (encoder{signed: true}).message(m); err != nil {
			t.Fatalf("the answer cannot be sent back: %v", err)
		}
	})
}
