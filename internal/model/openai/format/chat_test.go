package format

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// decoder is one of the three.
type decoder func(Stream, io.Reader)

// play decodes a canned body and gives its end.
func play(t testing.TB, decode decoder, body []byte) (done *model.Done, failed *model.Error) {
	t.Helper()
	call := wire.Watch(t.Context(), 0, 0)
	defer func() { _ = call.Close() }()
	res, err := call.Send(nil, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(body)))}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ends, text := 0, ""
	yield := func(c model.Chunk, err error) bool {
		if ends > 0 {
			t.Fatal("the stream went on after its end")
		}
		if err != nil {
			ends++
			if !errors.As(err, &failed) {
				t.Fatalf("%T is not an *Error", err)
			}
			return false
		}
		switch c := c.(type) {
		case model.TextDelta:
			text += c.Text
		case model.Done:
			ends++
			done = &c
		}
		return true
	}
	decode(Stream{Side: wire.Side{Provider: "p", Model: "m"}, Call: call, Yield: yield}, res.Body)
	if ends != 1 {
		t.Fatalf("the stream ended %d times", ends)
	}
	if done != nil && len(done.Blocks.Text()) != len(text) {
		t.Fatalf("pieces %q, whole %q", text, done.Blocks.Text())
	}
	return done, failed
}

func frames(data ...string) []byte {
	return []byte("data: " + strings.Join(data, "\n\ndata: ") + "\n\n")
}

// delta is a chunk with one delta.
func delta(d string) string { return `{"id":"x","choices":[{"index":0,"delta":` + d + `}]}` }

const (
	fin  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	over = "[DONE]"
)

// oddStream is a stream and what must come of it.
type oddStream struct {
	name   string
	body   []byte
	blocks string // "": it fails, and may be tried again
	stop   chat.Stop
}

func checkOdd(t *testing.T, decode decoder, cases []oddStream) {
	t.Helper()
	for _, c := range cases {
		done, failed := play(t, decode, c.body)
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

func TestOddChats(t *testing.T) {
	t.Parallel()
	checkOdd(t, Stream.Chat, []oddStream{
		{"nothing", nil, "", ""},
		{"not a stream", []byte("{\"choices\":[]}"), "", ""},
		{"only [DONE]", frames(over), `[]`, chat.StopEnd},
		{"no [DONE]", frames(delta(`{"content":"hi"}`), fin), `[{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"no finish and no [DONE]", frames(delta(`{"content":"hi"}`)), "", ""},
		{"comments", append([]byte(": PROCESSING\n\n"), frames(delta(`{"content":"hi"}`), over)...), `[{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"content that is no string", frames(delta(`{"content":null}`), delta(`{"content":["x"]}`), over), `[]`, chat.StopEnd},
		{"other choices", frames(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, over), `[]`, chat.StopEnd},
		{"calls finished with stop", frames(delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":"{}"}}]}`), fin, over), `[{"type":"tool_use","id":"c","name":"n","args":{}}]`, chat.StopTools},
		{"arguments as an object", frames(delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":{"a":1}}}]}`), over), `[{"type":"tool_use","id":"c","name":"n","args":{"a":1}}]`, chat.StopTools},
		{"no index", frames(delta(`{"tool_calls":[{"id":"c","function":{"name":"n","arguments":"{\"a\":"}}]}`), delta(`{"tool_calls":[{"function":{"arguments":"1}"}}]}`), delta(`{"tool_calls":[{"id":"d","function":{"name":"m","arguments":"{}"}}]}`), over), `[{"type":"tool_use","id":"c","name":"n","args":{"a":1}},{"type":"tool_use","id":"d","name":"m","args":{}}]`, chat.StopTools},
		{"two calls at one index", frames(delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":"{}"}}]}`), delta(`{"tool_calls":[{"index":0,"id":"d","function":{"name":"m","arguments":"{}"}}]}`), over), `[{"type":"tool_use","id":"c","name":"n","args":{}},{"type":"tool_use","id":"d","name":"m","args":{}}]`, chat.StopTools},
		{"no id", frames(delta(`{"tool_calls":[{"index":0,"function":{"name":"n","arguments":"{}"}}]}`), over), `[{"type":"tool_use","id":"call_x_1","name":"n","args":{}}]`, chat.StopTools},
		{"refusal", frames(delta(`{"refusal":"I will not."}`), fin, over), `[{"type":"text","text":"I will not."}]`, chat.StopRefused},
		{"reasoning by another name", frames(delta(`{"reasoning":"hm"}`), delta(`{"content":"hi"}`), over), `[{"type":"thinking","text":"hm"},{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"stop sequence of vLLM", frames(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","stop_reason":"###"}]}`, over), `[]`, chat.StopSeq},
		{"an error as a sentence", frames(`{"error":"overheated"}`), "", ""},
		{"wrong types", frames(`{"choices":{}}`), "", ""},
		{"an error as a code", frames(`{"error":{"code":502,"message":"gone"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), "", ""},
		{"an error that is not named", frames(delta(`{"content":"hi"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`, over), "", ""},
		{"details only", frames(delta(`{"reasoning_details":[{"type":"reasoning.summary","summary":"h","index":0}]}`), delta(`{"reasoning_details":[{"type":"reasoning.summary","summary":"m","index":0,"id":"r"}]}`), delta(`{"content":"hi"}`), over), `[{"type":"thinking","text":"hm","signature":"openrouter:[{\"id\":\"r\",\"index\":0,\"summary\":\"hm\",\"type\":\"reasoning.summary\"}]"},{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"details that are none", frames(delta(`{"reasoning_details":"x","content":"hi"}`), over), `[{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"encrypted twice", frames(delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"a"},{"type":"reasoning.encrypted","data":"b"}]}`), fin, over), `[{"type":"thinking","redacted":"openrouter:[{\"data\":\"a\",\"type\":\"reasoning.encrypted\"},{\"data\":\"b\",\"type\":\"reasoning.encrypted\"}]"}]`, chat.StopEnd},
	})
}

func TestChatUsage(t *testing.T) {
	t.Parallel()
	cases := map[string]chat.Usage{
		`{"prompt_tokens":100,"completion_tokens":5}`:                                                                                  {Input: 100, Output: 5},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60}}`:                                     {Input: 40, Output: 5, CacheRead: 60},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}`:             {Input: 10, Output: 5, CacheRead: 60, CacheWrite: 30},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_tokens_details":null}`:                        {Input: 36, Output: 5, CacheRead: 64},
		`{"prompt_tokens":10,"completion_tokens":-1,"prompt_tokens_details":{"cached_tokens":60}}`:                                     {CacheRead: 60},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60},"prompt_cache_hit_tokens":60,"x":[]}`: {Input: 40, Output: 5, CacheRead: 60},
	}
	for usage, want := range cases {
		done, failed := play(t, Stream.Chat, frames(fin, `{"choices":[],"usage":`+usage+`}`, over))
		if failed != nil || done.Usage != want {
			t.Errorf("%s: %+v, %v", usage, done, failed)
		}
	}
}

// keeps checks that whatever came can be kept and made a message of.
func keeps(t *testing.T, done *model.Done) {
	if done == nil {
		return
	}
	data, err := done.Blocks.MarshalJSON()
	if err != nil {
		t.Fatalf("the answer cannot be kept: %v", err)
	}
	var back chat.Blocks
	if err := back.UnmarshalJSON(data); err != nil {
		t.Fatalf("the answer cannot be read again: %v", err)
	}
	if _, err := model.NewMessage(model.Assistant, chat.Participant{}, done.Blocks); err != nil {
		t.Fatal(err)
	}
	if list := Details(done.Blocks); list != nil && !json.Valid(list) {
		t.Fatalf("the reasoning cannot be sent back: %s", list)
	}
}

func FuzzChat(f *testing.F) {
	f.Add([]byte(""))
	f.Add(frames(over))
	f.Add(frames(delta(`{"role":"assistant","content":"hällo"}`), fin, `{"choices":[],"usage":{"prompt_tokens":1}}`, over))
	f.Add(frames(delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":"{\"a\":"}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`), fin))
	f.Add(frames(delta(`{"reasoning_content":"hm"}`), delta(`{"refusal":"no"}`), over))
	f.Add(frames(delta(`{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}`), delta(`{"reasoning_details":[{"type":"reasoning.text","signature":"s"},{"type":"reasoning.encrypted","data":"d"}]}`), fin, over))
	f.Add(frames(`{"error":{"message":"m","code":"rate_limit_exceeded"}}`))
	f.Add(frames(`{"error":{"message":"m","code":429},"choices":[{"finish_reason":"error"}]}`))
	f.Add([]byte("data: {\"choices\":[\n"))
	f.Add([]byte(":c\r\n\r\ndata:[DONE]\r\n\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		done, _ := play(t, Stream.Chat, body)
		keeps(t, done)
	})
}

// collect gathers text.
func collect(into *string) func(model.Chunk, error) bool {
	return func(c model.Chunk, _ error) bool {
		if d, ok := c.(model.TextDelta); ok {
			*into += d.Text
		}
		return true
	}
}
