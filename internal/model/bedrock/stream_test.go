package bedrock

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/modeltest"
	"chorus/internal/sim/llmsim"
)

// canned answers every request with the same thing.
type canned struct {
	status int
	header http.Header
	body   []byte
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	header := c.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Header: header, Body: io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

func playing(c canned) *Provider {
	return New(Options{APIKey: "test-key", Region: "us-east-1", HTTPClient: &http.Client{Transport: c}, Getenv: noVariables})
}

// play streams a canned body and gives its end.
func play(t testing.TB, name string, body []byte) (*model.Done, *model.Error) {
	t.Helper()
	p := playing(canned{status: 200, body: body})
	var done *model.Done
	var failed *model.Error
	ends := 0
	for c, err := range p.Stream(t.Context(), model.Prepared{Model: name, Body: []byte(`{}`)}) {
		if err != nil {
			ends++
			if !errors.As(err, &failed) {
				t.Fatalf("%T is not an *Error", err)
			}
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

// message is one frame, as the vendor's own library writes it.
func message(t testing.TB, payload string, headers ...string) []byte {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers = append(m.Headers, eventstream.Header{Name: headers[i], Value: eventstream.StringValue(headers[i+1])})
	}
	var buf bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&buf, m); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// converse makes a stream of events, each "name payload".
func converse(t testing.TB, events ...string) []byte {
	t.Helper()
	var out []byte
	for _, ev := range events {
		name, payload, _ := strings.Cut(ev, " ")
		out = append(out, message(t, payload, ":message-type", "event", ":event-type", name, ":content-type", "application/json")...)
	}
	return out
}

// chunks makes a stream of Anthropic's events.
func chunks(t testing.TB, events ...string) []byte {
	t.Helper()
	var out []string
	for _, ev := range events {
		out = append(out, `chunk {"bytes":"`+base64.StdEncoding.EncodeToString([]byte(ev))+`","p":"abc"}`)
	}
	return converse(t, out...)
}

func TestOddStreams(t *testing.T) {
	t.Parallel()
	const stop, used = `messageStop {"stopReason":"end_turn"}`, `metadata {"usage":{"inputTokens":3,"outputTokens":4}}`
	text := converse(t, `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"hi"}}`)
	spoiled := bytes.Clone(text)
	spoiled[len(spoiled)-1] ^= 1
	cases := []struct {
		name, model string
		body        []byte
		blocks      string // "": it fails
		stop        chat.Stop
	}{
		{"nothing", nova, nil, "", ""},
		{"not frames", nova, []byte("<html>hello, this is not what you asked for</html>"), "", ""},
		{"half a frame", nova, text[:len(text)/2], "", ""},
		{"a wrong sum", nova, append(spoiled, converse(t, stop, used)...), "", ""},
		{"only an end", nova, converse(t, stop, used), `[]`, chat.StopEnd},
		{"an end without usage", nova, converse(t, stop), `[]`, chat.StopEnd},
		{"usage without an end", nova, converse(t, used), "", ""},
		{"unknown events", nova, converse(t, `newThing {"x":1}`, stop, used), `[]`, chat.StopEnd},
		{"arguments of no call", nova, converse(t, `contentBlockDelta {"contentBlockIndex":7,"delta":{"toolUse":{"input":"{"}}}`, stop, used), `[]`, chat.StopEnd},
		{"an empty delta", nova, converse(t, `contentBlockDelta {"contentBlockIndex":0}`, stop, used), `[]`, chat.StopEnd},
		{"a call without arguments", nova, converse(t, `contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t","name":"n"}}}`, stop, used), `[{"type":"tool_use","id":"t","name":"n","args":{}}]`, chat.StopTools},
		{"guardrail", nova, converse(t, `messageStop {"stopReason":"guardrail_intervened"}`, used), `[]`, chat.StopRefused},
		{"filter", nova, converse(t, `messageStop {"stopReason":"content_filtered"}`, used), `[]`, chat.StopRefused},
		{"window full", nova, converse(t, `messageStop {"stopReason":"model_context_window_exceeded"}`, used), `[]`, chat.StopLength},
		{"wrong types", nova, converse(t, `contentBlockDelta {"delta":3}`, stop, used), "", ""},
		{"not JSON", nova, converse(t, `contentBlockDelta {"delta":`, stop, used), "", ""},
		{"an error", nova, message(t, "", ":message-type", "error", ":error-code", "InternalFailure", ":error-message", "so sorry"), "", ""},
		{"an exception without JSON", nova, message(t, "so sorry", ":message-type", "exception", ":exception-type", "modelStreamErrorException"), "", ""},
		{"an event as a number", nova, append(message(t, "{}", ":message-type", "event"), converse(t, stop, used)...), `[]`, chat.StopEnd},

		{"chunk: only an end", claude, chunks(t, `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3}}`), `[]`, chat.StopEnd},
		{"chunk: text", claude, chunks(t, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}`, `{"type":"message_stop"}`), `[{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"chunk: an error inside", claude, chunks(t, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`), "", ""},
		{"chunk: no base64", claude, converse(t, `chunk {"bytes":"!"}`), "", ""},
		{"chunk: nothing", claude, append(converse(t, `chunk {}`), chunks(t, `{"type":"message_stop"}`)...), `[]`, chat.StopEnd},
		{"chunk: something else", claude, append(converse(t, `trace {}`), chunks(t, `{"type":"message_stop"}`)...), `[]`, chat.StopEnd},
	}
	for _, c := range cases {
		done, failed := play(t, c.model, c.body)
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

func TestKinds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		status        int
		name, message string
		want          model.ErrorKind
		says          string
	}{
		{429, "ThrottlingException", "Too many tokens, please wait before trying again.", model.RateLimited, ""},
		{429, "ModelNotReadyException:http://internal.amazon.com/", "Model is not ready for inference.", model.Overloaded, ""},
		{400, "ServiceQuotaExceededException", "Your request exceeds the service quota.", model.RateLimited, ""},
		{408, "ModelTimeoutException", "Model has timed out.", model.Overloaded, ""},
		{424, "ModelErrorException", "An unexpected error occurred.", model.Overloaded, ""},
		{503, "ServiceUnavailableException", "Bedrock is unable to process your request.", model.Overloaded, ""},
		{500, "InternalServerException", "oh", model.Overloaded, ""},
		{403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", model.Auth, "AWS credentials"},
		{403, "UnrecognizedClientException", "The security token included in the request is invalid.", model.Auth, ""},
		{403, "ExpiredTokenException", "The security token included in the request is expired", model.Auth, ""},
		{400, "ExpiredTokenException", "expired", model.Auth, ""},
		{400, "ValidationException", "Input is too long for requested model.", model.TooLong, ""},
		{400, "ValidationException", "The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length.", model.TooLong, ""},
		{400, "ValidationException", "The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum", model.TooLong, ""},
		{400, "ValidationException", "The maximum tokens you requested exceeds the model limit of 5120.", model.BadRequest, ""},
		{400, "ValidationException", "Invocation of model ID x with on-demand throughput isn't supported.", model.BadRequest, "inference profile"},
		{404, "ResourceNotFoundException", "Model not found.", model.BadRequest, "region us-east-1"},
		{404, "UnknownOperationException", "", model.BadRequest, "AWS_ENDPOINT_URL_BEDROCK"},
		{418, "NewException", "?", model.BadRequest, ""},
	}
	for _, c := range cases {
		p := playing(canned{status: c.status, header: http.Header{"X-Amzn-Errortype": {c.name}}, body: []byte(`{"Message":"` + c.message + `"}`)})
		_, failed := ask(t, p, hello(t, p, nova))
		if failed == nil || failed.Kind != c.want || failed.Status != c.status || !strings.Contains(failed.Error(), c.says) || !strings.Contains(failed.Message, c.message) {
			t.Errorf("%d %s: got %v (%s), want %s", c.status, c.name, failed, failed.Kind, c.want)
		}
		// The same in the middle of a stream, where there is no status.
		bare, _, _ := strings.Cut(c.name, ":")
		lower := strings.ToLower(bare[:1]) + bare[1:]
		_, failed = play(t, nova, message(t, `{"message":"`+c.message+`"}`, ":message-type", "exception", ":exception-type", lower))
		if c.status != 418 && (failed == nil || failed.Kind != c.want) {
			t.Errorf("%s in the stream: got %v, want %s", lower, failed, c.want)
		}
	}
}

func TestWholeAnswersWhereToolsDoNotStream(t *testing.T) {
	t.Parallel()
	sim, address := llmsim.Launch(t, llmsim.Options{})
	p := New(Options{APIKey: "test-key", Region: "us-east-1", BaseURL: address, Getenv: noVariables})
	defer p.Close()
	r := model.Request{
		Model: llama, Messages: []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "hi"})},
		Head: &model.Head{Tools: []model.ToolSpec{{Name: "bash"}}},
	}
	prep, err := p.Prepare(r)
	if err != nil {
		t.Fatal(err)
	}
	sim.Push(llmsim.Turn{
		Thinking: "hm", Redacted: "ZW5j", Text: "Let me see.", Usage: &llmsim.Usage{Input: 1, Output: 2},
		Calls: []llmsim.Call{{ID: "c-1", Name: "bash", Args: `{"command":"ls"}`}, {ID: "c-2", Name: "status", Args: `{}`}},
	})
	done, failed := ask(t, p, prep)
	if failed != nil {
		t.Fatal(failed)
	}
	got, _ := done.Blocks.MarshalJSON()
	if want := `[{"type":"thinking","text":"hm","signature":"` + done.Blocks[0].(chat.Thinking).Signature +
		`"},{"type":"thinking","redacted":"ZW5j"},{"type":"text","text":"Let me see."},{"type":"tool_use","id":"c-1","name":"bash","args":{"command":"ls"}},{"type":"tool_use","id":"c-2","name":"status","args":{}}]`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if done.Stop != chat.StopTools || done.Usage != (chat.Usage{Input: 1, Output: 2}) || done.ID == "" || sim.Requests()[0].Stream {
		t.Errorf("got %+v", done)
	}
	sim.Push(llmsim.Text("streamed"))
	if done, failed := ask(t, p, hello(t, p, llama)); failed != nil || done.Blocks.Text() != "streamed" || !sim.Requests()[1].Stream {
		t.Errorf("without tools: %+v, %v", done, failed)
	}
	for _, body := range []string{"", "{", `{"output":{}}`} {
		cut := playing(canned{status: 200, body: []byte(body)})
		if _, failed := ask(t, cut, prep); failed == nil || failed.Kind != model.Network {
			t.Errorf("%q: got %v", body, failed)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add(false, []byte(nil))
	f.Add(false, []byte("\x00\x00\x00\x10\x00\x00\x00\x00"))
	f.Add(false, []byte("\x00\x00\x00\x10\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add(false, converse(f, `messageStart {"role":"assistant"}`, `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"hällo"}}`, `contentBlockStop {"contentBlockIndex":0}`,
		`contentBlockStart {"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t","name":"bash"}}}`, `contentBlockDelta {"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"a\":"}}}`,
		`messageStop {"stopReason":"tool_use"}`, `metadata {"usage":{"inputTokens":3}}`))
	f.Add(false, converse(f, `contentBlockDelta {"contentBlockIndex":-1,"delta":{"reasoningContent":{"text":"x","signature":"s"}}}`, `messageStop {}`))
	f.Add(false, message(f, `{"message":"m"}`, ":message-type", "exception", ":exception-type", "throttlingException"))
	f.Add(true, chunks(f, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"bash","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}`, `{"type":"message_stop"}`))
	f.Fuzz(func(t *testing.T, anthropics bool, body []byte) {
		name := nova
		if anthropics {
			name = claude
		}
		done, _ := play(t, name, body)
		if done == nil {
			return
		}
		// Whatever came can be kept and sent back.
		if _, err := done.Blocks.MarshalJSON(); err != nil {
			t.Fatalf("the answer cannot be kept: %v", err)
		}
		m, err := model.NewMessage(model.Assistant, chat.Participant{}, done.Blocks)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (encoder{takes: takes{thinking: true}}).message(m); err != nil {
			t.Fatalf("the answer cannot be sent back: %v", err)
		}
	})
}

// FuzzEvents is behind the frames, whose sums a fuzzer cannot guess.
func FuzzEvents(f *testing.F) {
	f.Add("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"x"}}`, "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"toolUse":{"input":"x"}}}`)
	f.Add("contentBlockStart", `{"start":{"toolUse":{}}}`, "messageStop", `{"stopReason":"x"}`)
	f.Add("metadata", `{"usage":{"inputTokens":-1}}`, "messageStop", `null`)
	f.Fuzz(func(t *testing.T, kind, payload, kind2, payload2 string) {
		if len(kind) > 60 || len(kind2) > 60 {
			return
		}
		play(t, nova, converse(t, kind+" "+payload, kind2+" "+payload2, `messageStop {}`))
	})
}
