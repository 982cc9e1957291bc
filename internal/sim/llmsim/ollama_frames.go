package llmsim

import (
	"cmp"
	"encoding/json"
	"time"
)

// ollamaStops are Ollama's stop reasons; it has none for a refusal.
var ollamaStops = map[string]string{
	"end": "stop", "tools": "stop", "length": "length", "stop_sequence": "stop", "refusal": "stop", "pause": "stop",
}

// ollamaFrame is one line of an answer. The timestamp encodes the request's number, so that answers are always the same and no two are equal.
func ollamaFrame(req Request, message, more obj) obj {
	out := obj{
		"model": req.Model, "message": message, "done": false,
		"created_at": time.Unix(created, 0).Add(time.Duration(req.N) * time.Millisecond).UTC().Format(time.RFC3339Nano),
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// ollamaEnd is what the last line says.
func ollamaEnd(turn Turn, u Usage) obj {
	end := obj{"done": true, "done_reason": ollamaStops[turn.stop()], "total_duration": 1_000_000, "load_duration": 1_000}
	if !turn.NoUsage {
		end["prompt_eval_count"], end["eval_count"] = u.Input+u.CacheRead+u.CacheWrite, u.Output
	}
	return end
}

// ollamaCalls returns the calls, each complete; a call that is cut off is left out.
func ollamaCalls(turn Turn) []obj {
	var calls []obj
	for _, c := range turn.Calls {
		args := json.RawMessage(cmp.Or(c.args(), "{}"))
		if !json.Valid(args) || args[0] != '{' {
			continue
		}
		call := obj{"function": obj{"index": len(calls), "name": c.Name, "arguments": args}}
		if c.ID != "" { // like newer versions
			call["id"] = c.ID
		}
		calls = append(calls, call)
	}
	return calls
}

// ollamaWhole is the answer without streaming.
func ollamaWhole(req Request, turn Turn, usage Usage) obj {
	message := obj{"role": "assistant", "content": turn.text() + turn.Refusal}
	if turn.Thinking != "" && req.thoughts {
		message["thinking"] = turn.Thinking
	}
	if calls := ollamaCalls(turn); calls != nil {
		message["tool_calls"] = calls
	}
	return ollamaFrame(req, message, ollamaEnd(turn, usage))
}

// ollamaFrames is the answer as lines.
func ollamaFrames(req Request, turn Turn, usage Usage) []frame {
	var frames []frame
	add := func(message, more obj) {
		message["role"] = "assistant"
		frames = append(frames, frame{data: encode(ollamaFrame(req, message, more)), line: true})
	}
	if req.thoughts {
		for _, p := range pieces(turn.Thinking, turn.Chunk) {
			add(obj{"content": "", "thinking": p}, nil)
		}
	}
	for _, p := range pieces(turn.text()+turn.Refusal, turn.Chunk) {
		add(obj{"content": p}, nil)
	}
	for _, call := range ollamaCalls(turn) {
		add(obj{"content": "", "tool_calls": []obj{call}}, nil)
	}
	add(obj{"content": ""}, ollamaEnd(turn, usage))
	return frames
}

func ollamaUsual(code int) string {
	switch {
	case code == 401:
		return "unauthorized"
	case code == 404:
		return "model 'unknown' not found"
	case code == 429:
		return "too many concurrent requests"
	case code == 503:
		return "server busy, please try again.  maximum pending requests exceeded"
	case code >= 500:
		return "llama runner process has terminated: exit status 2"
	default:
		return "invalid request"
	}
}

// ollamaErrorFrame is an error in the stream: always a sentence.
func ollamaErrorFrame(f *Fault) frame {
	message := cmp.Or(f.Message, "an error was encountered while running the model: unexpected EOF")
	return frame{data: encode(obj{"error": message}), line: true}
}
