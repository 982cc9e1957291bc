package llmsim

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
)

// obj is a JSON object under construction.
type obj = map[string]any

// anthropicStops are Anthropic's stop reasons.
var anthropicStops = map[string]string{
	"end": "end_turn", "tools": "tool_use", "length": "max_tokens",
	"stop_sequence": "stop_sequence", "refusal": "refusal", "pause": "pause_turn",
}

// orNull is nil for "", as the API writes it.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// signature is derived from the thinking, so that a client that changes either is detected.
func (t Turn) signature() string {
	if t.Signature != "" {
		return t.Signature
	}
	h := fnv.New64a()
	h.Write([]byte(t.Thinking))
	return fmt.Sprintf("sig-%016x", h.Sum64())
}

func anthropicUsage(u Usage) obj {
	return obj{
		"input_tokens": u.Input, "cache_creation_input_tokens": u.CacheWrite,
		"cache_read_input_tokens": u.CacheRead, "output_tokens": u.Output,
	}
}

// anthropicWhole is the answer without streaming.
func anthropicWhole(req Request, turn Turn, usage Usage) obj {
	content := []obj{}
	if turn.Thinking != "" || turn.Signature != "" {
		content = append(content, obj{"type": "thinking", "thinking": turn.Thinking, "signature": turn.signature()})
	}
	if turn.Redacted != "" {
		content = append(content, obj{"type": "redacted_thinking", "data": turn.Redacted})
	}
	if text := turn.text(); text != "" {
		content = append(content, obj{"type": "text", "text": text})
	}
	for i, c := range turn.Calls {
		args := json.RawMessage(c.args())
		if !json.Valid(args) {
			args = json.RawMessage(`{}`)
		}
		content = append(content, obj{"type": "tool_use", "id": callID(Anthropic, req, c, i), "name": c.Name, "input": args})
	}
	return obj{
		"id": fmt.Sprintf("msg_sim_%06d", req.N), "type": "message", "role": "assistant", "model": req.Model, "content": content,
		"stop_reason": anthropicStops[turn.stop()], "stop_sequence": orNull(turn.StopSequence), "usage": anthropicUsage(usage),
	}
}

func callID(api API, req Request, c Call, i int) string {
	switch {
	case c.ID != "":
		return c.ID
	case api == Anthropic:
		return fmt.Sprintf("toolu_sim_%d_%d", req.N, i+1)
	default:
		return fmt.Sprintf("call_sim_%d_%d", req.N, i+1)
	}
}

// anthropicBuilder collects the frames of a stream.
type anthropicBuilder struct {
	frames []frame
	index  int
}

func (b *anthropicBuilder) add(event string, body obj) {
	body["type"] = event
	b.frames = append(b.frames, frame{event: event, data: encode(body)})
}

func (b *anthropicBuilder) start(index int, block obj) {
	b.add("content_block_start", obj{"index": index, "content_block": block})
}

func (b *anthropicBuilder) delta(index int, delta obj) {
	b.add("content_block_delta", obj{"index": index, "delta": delta})
}

func (b *anthropicBuilder) stop(index int) { b.add("content_block_stop", obj{"index": index}) }

// anthropicFrames is the answer as a stream.
func anthropicFrames(req Request, turn Turn, usage Usage) []frame {
	b := &anthropicBuilder{}
	first := usage
	first.Output = 1
	b.add("message_start", obj{"message": obj{
		"id": fmt.Sprintf("msg_sim_%06d", req.N), "type": "message", "role": "assistant", "model": req.Model,
		"content": []obj{}, "stop_reason": nil, "stop_sequence": nil, "usage": anthropicUsage(first),
	}})
	b.add("ping", obj{})
	if turn.Thinking != "" || turn.Signature != "" {
		b.start(b.index, obj{"type": "thinking", "thinking": "", "signature": ""})
		for _, p := range pieces(turn.Thinking, turn.Chunk) {
			b.delta(b.index, obj{"type": "thinking_delta", "thinking": p})
		}
		b.delta(b.index, obj{"type": "signature_delta", "signature": turn.signature()})
		b.stop(b.index)
		b.index++
	}
	if turn.Redacted != "" {
		b.start(b.index, obj{"type": "redacted_thinking", "data": turn.Redacted})
		b.stop(b.index)
		b.index++
	}
	if text := turn.text(); text != "" {
		b.start(b.index, obj{"type": "text", "text": ""})
		for _, p := range pieces(text, turn.Chunk) {
			b.delta(b.index, obj{"type": "text_delta", "text": p})
		}
		b.stop(b.index)
		b.index++
	}
	b.calls(req, turn)
	b.add("message_delta", obj{
		"delta": obj{"stop_reason": anthropicStops[turn.stop()], "stop_sequence": orNull(turn.StopSequence)},
		"usage": obj{"output_tokens": usage.Output},
	})
	b.add("message_stop", obj{})
	return b.frames
}

func (b *anthropicBuilder) calls(req Request, turn Turn) {
	begin := func(i int) {
		c := turn.Calls[i]
		b.start(b.index+i, obj{"type": "tool_use", "id": callID(Anthropic, req, c, i), "name": c.Name, "input": obj{}})
	}
	fragment := func(i int, s string) { b.delta(b.index+i, obj{"type": "input_json_delta", "partial_json": s}) }
	turn.eachCall(begin, fragment, func(i int) { b.stop(b.index + i) })
}

// eachCall writes the calls of a turn one after the other, or interleaved if the script says so: how each begins, its fragments, how it ends.
func (t Turn) eachCall(begin func(int), fragment func(int, string), end func(int)) {
	if t.Interleave {
		interleave(t.Calls, begin, fragment)
		for i := range t.Calls {
			end(i)
		}
		return
	}
	for i, c := range t.Calls {
		begin(i)
		for _, f := range c.fragments() {
			fragment(i, f)
		}
		end(i)
	}
}

// interleave begins every call and then alternates their fragments.
func interleave(calls []Call, begin func(int), fragment func(int, string)) {
	var parts [][]string
	most := 0
	for i, c := range calls {
		begin(i)
		parts = append(parts, c.fragments())
		most = max(most, len(parts[i]))
	}
	for k := range most {
		for i := range calls {
			if k < len(parts[i]) {
				fragment(i, parts[i][k])
			}
		}
	}
}
