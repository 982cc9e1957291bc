package llmsim

import "fmt"

// openaiStops are OpenAI's stop reasons.
var openaiStops = map[string]string{
	"end": "stop", "tools": "tool_calls", "length": "length",
	"stop_sequence": "stop", "refusal": "content_filter", "pause": "stop",
}

func openaiUsage(u Usage) obj {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	details := obj{"cached_tokens": u.CacheRead, "audio_tokens": 0}
	if u.CacheWrite > 0 {
		details["cache_write_tokens"] = u.CacheWrite
	}
	return obj{
		"prompt_tokens": prompt, "completion_tokens": u.Output, "total_tokens": prompt + u.Output,
		"prompt_tokens_details":     details,
		"completion_tokens_details": obj{"reasoning_tokens": 0},
	}
}

// openaiWhole is the answer without streaming.
func openaiWhole(req Request, turn Turn, usage Usage) obj {
	message := obj{"role": "assistant", "content": orNull(turn.text()), "refusal": orNull(turn.Refusal)}
	if turn.Thinking != "" {
		message["reasoning_content"] = turn.Thinking
	}
	var calls []obj
	for i, c := range turn.Calls {
		calls = append(calls, obj{
			"id": callID(OpenAI, req, c, i), "type": "function",
			"function": obj{"name": c.Name, "arguments": c.args()},
		})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return obj{
		"id": fmt.Sprintf("chatcmpl-sim-%06d", req.N), "object": "chat.completion", "created": created, "model": req.Model,
		"choices": []obj{{"index": 0, "message": message, "finish_reason": openaiStops[turn.stop()], "logprobs": nil}},
		"usage":   openaiUsage(usage),
	}
}

// openaiBuilder collects the frames of a stream.
type openaiBuilder struct {
	req    Request
	frames []frame
}

func (b *openaiBuilder) chunk(choices []obj, usage any) {
	body := obj{
		"id": fmt.Sprintf("chatcmpl-sim-%06d", b.req.N), "object": "chat.completion.chunk", "created": created,
		"model": b.req.Model, "choices": choices,
	}
	if b.req.includeUsed {
		body["usage"] = usage
	}
	b.frames = append(b.frames, frame{data: encode(body)})
}

func (b *openaiBuilder) delta(delta obj) {
	b.chunk([]obj{{"index": 0, "delta": delta, "finish_reason": nil, "logprobs": nil}}, nil)
}

// openaiFrames is the answer as a stream.
func openaiFrames(req Request, turn Turn, usage Usage) []frame {
	b := &openaiBuilder{req: req}
	b.delta(obj{"role": "assistant", "content": ""})
	for _, p := range pieces(turn.Thinking, turn.Chunk) {
		b.delta(obj{"reasoning_content": p})
	}
	for _, p := range pieces(turn.text(), turn.Chunk) {
		b.delta(obj{"content": p})
	}
	for _, p := range pieces(turn.Refusal, turn.Chunk) {
		b.delta(obj{"refusal": p})
	}
	b.calls(turn)
	b.chunk([]obj{{"index": 0, "delta": obj{}, "finish_reason": openaiStops[turn.stop()], "logprobs": nil}}, nil)
	if req.includeUsed && !turn.NoUsage {
		b.chunk([]obj{}, openaiUsage(usage))
	}
	if !turn.NoDone {
		b.frames = append(b.frames, frame{data: []byte("[DONE]")})
	}
	return b.frames
}

func (b *openaiBuilder) calls(turn Turn) {
	head := func(i int) obj {
		c := turn.Calls[i]
		return obj{
			"index": i, "id": callID(OpenAI, b.req, c, i), "type": "function",
			"function": obj{"name": c.Name, "arguments": ""},
		}
	}
	begin := func(i int) { b.delta(obj{"tool_calls": []obj{head(i)}}) }
	fragment := func(i int, s string) {
		call := obj{"index": i, "function": obj{"arguments": s}}
		if turn.RepeatIDs {
			call = head(i)
			call["function"].(obj)["arguments"] = s
		}
		b.delta(obj{"tool_calls": []obj{call}})
	}
	turn.eachCall(begin, fragment, func(int) {})
}
