package llmsim

import (
	"cmp"
	"fmt"
)

// responsesItems returns the output of a turn: reasoning, a message, calls.
func responsesItems(req Request, turn Turn) []obj {
	var out []obj
	id := func(kind string) string { return fmt.Sprintf("%s_sim_%d_%d", kind, req.N, len(out)) }
	reason := func(text, sealed string) {
		summary := []obj{}
		if text != "" {
			summary = append(summary, obj{"type": "summary_text", "text": text})
		}
		it := obj{"type": "reasoning", "id": id("rs"), "summary": summary}
		if req.sealed {
			it["encrypted_content"] = sealed
		}
		out = append(out, it)
	}
	if turn.Thinking != "" {
		reason(turn.Thinking, turn.signature())
	}
	if turn.Redacted != "" {
		reason("", turn.Redacted)
	}
	if turn.text() != "" || turn.Refusal != "" {
		content := []obj{}
		if turn.text() != "" {
			content = append(content, obj{"type": "output_text", "text": turn.text(), "annotations": []obj{}})
		}
		if turn.Refusal != "" {
			content = append(content, obj{"type": "refusal", "refusal": turn.Refusal})
		}
		out = append(out, obj{"type": "message", "id": id("msg"), "role": "assistant", "status": "completed", "content": content})
	}
	for i, c := range turn.Calls {
		out = append(out, obj{
			"type": "function_call", "id": id("fc"), "call_id": callID(Responses, req, c, i), "name": c.Name, "arguments": c.args(), "status": "completed",
		})
	}
	return out
}

// responsesState is the answer as in the first and the last events.
func responsesState(req Request, status string, output []obj, usage any) obj {
	return obj{
		"id": fmt.Sprintf("resp_sim_%06d", req.N), "object": "response", "created_at": created, "model": req.Model,
		"status": status, "output": output, "usage": usage, "error": nil, "incomplete_details": nil, "store": false,
	}
}

// responsesEnd is the answer at its end.
func responsesEnd(req Request, turn Turn, usage Usage) obj {
	prompt := usage.Input + usage.CacheRead + usage.CacheWrite
	var used any = obj{
		"input_tokens": prompt, "input_tokens_details": obj{"cached_tokens": usage.CacheRead},
		"output_tokens": usage.Output, "output_tokens_details": obj{"reasoning_tokens": min(len(turn.Thinking)/4, usage.Output)},
		"total_tokens": prompt + usage.Output,
	}
	if turn.NoUsage {
		used = nil
	}
	out := responsesState(req, "completed", responsesItems(req, turn), used)
	switch turn.stop() {
	case "length":
		out["status"], out["incomplete_details"] = "incomplete", obj{"reason": "max_output_tokens"}
	case "refusal":
		out["status"], out["incomplete_details"] = "incomplete", obj{"reason": "content_filter"}
	}
	return out
}

// responsesWhole is the answer without streaming.
func responsesWhole(req Request, turn Turn, usage Usage) obj { return responsesEnd(req, turn, usage) }

// responsesBuilder collects the frames of a stream.
type responsesBuilder struct {
	turn   Turn
	frames []frame
}

func (b *responsesBuilder) add(event string, body obj) {
	body["type"], body["sequence_number"] = event, len(b.frames)
	b.frames = append(b.frames, frame{event: event, data: encode(body)})
}

// responsesFrames is the answer as a stream.
func responsesFrames(req Request, turn Turn, usage Usage) []frame {
	b := &responsesBuilder{turn: turn}
	for _, event := range []string{"response.created", "response.in_progress"} {
		b.add(event, obj{"response": responsesState(req, "in_progress", []obj{}, nil)})
	}
	items := responsesItems(req, turn)
	calls := len(items) - len(turn.Calls)
	for i, it := range items[:calls] {
		if it["type"] == "reasoning" {
			b.reasoning(i, it)
		} else {
			b.message(i, it)
		}
	}
	b.calls(calls, items[calls:])
	end := responsesEnd(req, turn, usage)
	b.add("response."+end["status"].(string), obj{"response": end})
	return b.frames
}

// with returns a copy of an item with some fields replaced.
func with(it obj, fields obj) obj {
	out := obj{}
	for k, v := range it {
		out[k] = v
	}
	for k, v := range fields {
		out[k] = v
	}
	return out
}

func (b *responsesBuilder) reasoning(i int, it obj) {
	b.add("response.output_item.added", obj{"output_index": i, "item": with(it, obj{"summary": []obj{}})})
	for n, s := range it["summary"].([]obj) {
		at := obj{"item_id": it["id"], "output_index": i, "summary_index": n}
		b.add("response.reasoning_summary_part.added", with(at, obj{"part": obj{"type": "summary_text", "text": ""}}))
		for _, p := range pieces(s["text"].(string), b.turn.Chunk) {
			b.add("response.reasoning_summary_text.delta", with(at, obj{"delta": p}))
		}
		b.add("response.reasoning_summary_text.done", with(at, obj{"text": s["text"]}))
		b.add("response.reasoning_summary_part.done", with(at, obj{"part": s}))
	}
	b.add("response.output_item.done", obj{"output_index": i, "item": it})
}

func (b *responsesBuilder) message(i int, it obj) {
	b.add("response.output_item.added", obj{"output_index": i, "item": with(it, obj{"content": []obj{}, "status": "in_progress"})})
	for n, c := range it["content"].([]obj) {
		kind, field := "response.output_text", "text"
		if c["type"] == "refusal" {
			kind, field = "response.refusal", "refusal"
		}
		at := obj{"item_id": it["id"], "output_index": i, "content_index": n}
		b.add("response.content_part.added", with(at, obj{"part": with(c, obj{field: ""})}))
		for _, p := range pieces(c[field].(string), b.turn.Chunk) {
			b.add(kind+".delta", with(at, obj{"delta": p}))
		}
		b.add(kind+".done", with(at, obj{field: c[field]}))
		b.add("response.content_part.done", with(at, obj{"part": c}))
	}
	b.add("response.output_item.done", obj{"output_index": i, "item": it})
}

func (b *responsesBuilder) calls(first int, items []obj) {
	begin := func(i int) {
		b.add("response.output_item.added", obj{"output_index": first + i, "item": with(items[i], obj{"arguments": "", "status": "in_progress"})})
	}
	fragment := func(i int, s string) {
		b.add("response.function_call_arguments.delta", obj{"item_id": items[i]["id"], "output_index": first + i, "delta": s})
	}
	end := func(i int) {
		b.add("response.function_call_arguments.done", obj{"item_id": items[i]["id"], "output_index": first + i, "arguments": items[i]["arguments"]})
		b.add("response.output_item.done", obj{"output_index": first + i, "item": items[i]})
	}
	b.turn.eachCall(begin, fragment, end)
}

// responsesErrorFrame is an error in the stream: its code is at the top.
func responsesErrorFrame(f *Fault) frame {
	code, message := cmp.Or(f.ErrCode, cmp.Or(f.Type, "server_error")), cmp.Or(f.Message, "Overloaded")
	return frame{event: "error", data: encode(obj{"type": "error", "code": code, "message": message, "param": nil, "sequence_number": 0})}
}
