package format

import (
	"fmt"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// ev is an event of Responses: its type, and the rest of its fields.
func ev(kind, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return `{"type":"response.` + kind + `"` + fields + `}`
}

const (
	made      = `{"type":"response.created","response":{"id":"resp_1","status":"in_progress"}}`
	completed = `{"type":"response.completed","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":5}}}}`
)

func opened(index int, item string) string {
	return ev("output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
}

func closed(index int, item string) string {
	return ev("output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
}

func piece(kind string, index int, text string) string {
	return ev(kind+".delta", fmt.Sprintf(`"output_index":%d,"delta":%q`, index, text))
}

func TestOddResponses(t *testing.T) {
	t.Parallel()
	hi := `[{"type":"text","text":"hi"}]`
	checkOdd(t, Stream.Responses, []oddStream{
		{"nothing", nil, "", ""},
		{"not a stream", []byte(`{"id":"resp_1","output":[]}`), "", ""},
		{"only [DONE]", frames(over), "", ""},
		{"no end", frames(made, piece("output_text", 0, "hi")), "", ""},
		{"nothing said", frames(made, completed), `[]`, chat.StopEnd},
		{"an item that nobody announced", frames(made, piece("output_text", 3, "hi"), completed), hi, chat.StopEnd},
		{"no deltas", frames(made, closed(0, `{"type":"message","content":[{"type":"output_text","text":"hi"}]}`), completed), hi, chat.StopEnd},
		{"deltas and the whole", frames(made, opened(0, `{"type":"message"}`), piece("output_text", 0, "h"), piece("output_text", 0, "i"), closed(0, `{"type":"message","content":[{"type":"output_text","text":"hi"}]}`), completed), hi, chat.StopEnd},
		{"a call without deltas", frames(made, closed(0, `{"type":"function_call","call_id":"c","name":"n","arguments":"{\"a\":1}"}`), completed), `[{"type":"tool_use","id":"c","name":"n","args":{"a":1}}]`, chat.StopTools},
		{"a call without an id", frames(made, opened(0, `{"type":"function_call","name":"n"}`), completed), `[{"type":"tool_use","id":"call_resp_1_1","name":"n","args":{}}]`, chat.StopTools},
		{"out of order", frames(made, opened(1, `{"type":"function_call","call_id":"d","name":"n"}`), opened(0, `{"type":"function_call","call_id":"c","name":"n"}`), piece("function_call_arguments", 1, `{"b":`), piece("function_call_arguments", 0, `{}`), piece("function_call_arguments", 1, `2}`), completed), `[{"type":"tool_use","id":"c","name":"n","args":{}},{"type":"tool_use","id":"d","name":"n","args":{"b":2}}]`, chat.StopTools},
		{"a summary of two paragraphs", frames(made, opened(0, `{"type":"reasoning"}`), piece("reasoning_summary_text", 0, "a"), ev("reasoning_summary_text.delta", `"output_index":0,"summary_index":1,"delta":"b"`), closed(0, `{"type":"reasoning","encrypted_content":"E","summary":[{"text":"a"},{"text":"b"}]}`), completed), `[{"type":"thinking","text":"a\n\nb","signature":"openai:E"}]`, chat.StopEnd},
		{"a summary without deltas", frames(made, closed(0, `{"type":"reasoning","encrypted_content":"E","summary":[{"text":"a"},{"text":"b"}]}`), completed), `[{"type":"thinking","text":"a\n\nb","signature":"openai:E"}]`, chat.StopEnd},
		{"sealed", frames(made, closed(0, `{"type":"reasoning","encrypted_content":"E","summary":[]}`), completed), `[{"type":"thinking","redacted":"openai:E"}]`, chat.StopEnd},
		{"reasoning that leaves nothing", frames(made, closed(0, `{"type":"reasoning","encrypted_content":null,"summary":[]}`), completed), `[]`, chat.StopEnd},
		{"refusal", frames(made, piece("refusal", 0, "no"), completed), `[{"type":"text","text":"no"}]`, chat.StopRefused},
		{"items of tools we did not ask for", frames(made, opened(0, `{"type":"web_search_call","id":"ws"}`), closed(0, `{"type":"web_search_call","id":"ws"}`), piece("output_text", 1, "hi"), completed), hi, chat.StopEnd},
		{"too long", frames(made, piece("output_text", 0, "hi"), ev("incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`)), hi, chat.StopLength},
		{"filtered", frames(made, ev("incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`)), `[]`, chat.StopRefused},
		{"an end that says nothing", frames(made, ev("completed", "")), `[]`, chat.StopEnd},
		{"the type only in the event", []byte("event: response.output_text.delta\ndata: {\"delta\":\"hi\"}\n\nevent: response.completed\ndata: {}\n\n"), hi, chat.StopEnd},
		{"failed", frames(made, ev("failed", `"response":{"status":"failed","error":{"code":"server_error","message":"m"}}`)), "", ""},
		{"failed without a reason", frames(made, ev("failed", "")), "", ""},
		{"an error inside", frames(made, `{"type":"error","error":{"type":"server_error","message":"m"}}`), "", ""},
		{"an error as in Chat Completions", frames(made, `{"error":{"code":502,"message":"m"}}`), "", ""},
		{"wrong types", frames(`{"type":5}`), "", ""},
	})
}

func TestResponsesErrors(t *testing.T) {
	t.Parallel()
	for frame, want := range map[string]model.ErrorKind{
		`{"type":"error","code":"rate_limit_exceeded","message":"slow down"}`:                                                           model.RateLimited,
		`{"type":"error","code":"server_error","message":"m"}`:                                                                          model.Overloaded,
		`{"type":"error","code":null,"message":"m"}`:                                                                                    model.Overloaded,
		`{"type":"error","code":"context_length_exceeded","message":"m"}`:                                                               model.TooLong,
		`{"type":"error","code":"insufficient_quota","message":"m"}`:                                                                    model.Auth,
		`{"type":"error","error":{"type":"invalid_request_error","message":"m"}}`:                                                       model.BadRequest,
		`{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"m"}}}`:                                       model.BadRequest,
		`{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Please try again in 1s"}}}`:             model.RateLimited,
		`{"type":"response.failed","response":{"error":{"code":"x","message":"Your input exceeds the context window of this model."}}}`: model.TooLong,
	} {
		if done, failed := play(t, Stream.Responses, frames(made, frame)); failed == nil || failed.Kind != want || failed.Message == "" {
			t.Errorf("%s: %+v %+v", frame, done, failed)
		}
	}
}

func TestResponsesUsage(t *testing.T) {
	t.Parallel()
	done, failed := play(t, Stream.Responses, frames(made, completed))
	if failed != nil || done.Usage != (chat.Usage{Input: 40, Output: 7, CacheRead: 60}) || done.ID != "resp_1" {
		t.Errorf("%+v, %v", done, failed)
	}
}

func FuzzResponses(f *testing.F) {
	f.Add([]byte(""))
	f.Add(frames(made, completed))
	f.Add(frames(made, opened(0, `{"type":"reasoning"}`), piece("reasoning_summary_text", 0, "hm"), closed(0, `{"type":"reasoning","encrypted_content":"E","summary":[{"text":"hm"}]}`), piece("output_text", 1, "hällo"), completed))
	f.Add(frames(made, opened(1, `{"type":"function_call","call_id":"d","name":"n"}`), piece("function_call_arguments", 1, `{"b":`), piece("function_call_arguments", 0, `{}`), completed))
	f.Add(frames(made, piece("refusal", 0, "no"), ev("incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`)))
	f.Add(frames(made, ev("failed", `"response":{"error":{"code":"server_error","message":"m"}}`)))
	f.Add(frames(`{"type":"error","code":"x","message":"m"}`))
	f.Add([]byte("event: response.completed\r\ndata: {}\r\n\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		done, _ := play(t, Stream.Responses, body)
		keeps(t, done)
	})
}

func TestOddTexts(t *testing.T) {
	t.Parallel()
	say := func(text string) string { return fmt.Sprintf(`{"id":"c","choices":[{"index":0,"text":%q}]}`, text) }
	end := func(why string) string {
		return `{"choices":[{"index":0,"text":"","finish_reason":"` + why + `"}]}`
	}
	hi := `[{"type":"text","text":" hi"}]`
	checkOdd(t, Stream.Completions, []oddStream{
		{"nothing", nil, "", ""},
		{"no end", frames(say("hi")), "", ""},
		{"stopped", frames(say(" "), say("hi"), end("stop"), over), hi, chat.StopEnd},
		{"no [DONE]", frames(say(" hi"), end("stop")), hi, chat.StopEnd},
		{"too long", frames(say(" hi"), end("length"), over), hi, chat.StopLength},
		{"filtered", frames(end("content_filter"), over), `[]`, chat.StopRefused},
		{"a sequence of vLLM's", frames(`{"choices":[{"index":0,"text":" hi","finish_reason":"stop","stop_reason":"\nada:"}]}`, over), hi, chat.StopSeq},
		{"another choice", frames(`{"choices":[{"index":1,"text":"no"}]}`, say(" hi"), over), hi, chat.StopEnd},
		{"an error", frames(say(" hi"), `{"error":{"message":"m"}}`), "", ""},
		{"wrong types", frames(`{"choices":""}`), "", ""},
	})
	done, _ := play(t, Stream.Completions, frames(say("x"), end("stop"), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}`, over))
	if done == nil || done.Usage != (chat.Usage{Input: 9, Output: 2}) || done.ID != "c" {
		t.Errorf("%+v", done)
	}
}

func FuzzCompletions(f *testing.F) {
	f.Add([]byte(""))
	f.Add(frames(`{"id":"c","choices":[{"index":0,"text":"hällo"}]}`, `{"choices":[{"index":0,"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`, over))
	f.Add(frames(`{"error":{"message":"m","code":429}}`))
	f.Add(frames(`{"choices":[{"text":null,"finish_reason":"length"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		done, _ := play(t, Stream.Completions, body)
		keeps(t, done)
	})
}
