package llmsim

import (
	"encoding/json"
	"fmt"
	"net/http"

	"chorus/internal/model"
	"chorus/internal/model/catalog"
)

// completionsBody is a request to /v1/completions.
type completionsBody struct {
	Model            string          `json:"model"`
	Prompt           json.RawMessage `json:"prompt"`
	Stream           bool            `json:"stream"`
	StreamOptions    *openaiStream   `json:"stream_options"`
	MaxTokens        *int            `json:"max_tokens"`
	Temperature      *float64        `json:"temperature"`
	TopP             *float64        `json:"top_p"`
	Stop             json.RawMessage `json:"stop"`
	N                *int            `json:"n"`
	Echo             bool            `json:"echo"`
	Logprobs         *int            `json:"logprobs"`
	Suffix           *string         `json:"suffix"`
	BestOf           *int            `json:"best_of"`
	Seed             *int            `json:"seed"`
	User             string          `json:"user"`
	LogitBias        json.RawMessage `json:"logit_bias"`
	PresencePenalty  *float64        `json:"presence_penalty"`
	FrequencyPenalty *float64        `json:"frequency_penalty"`
}

// completionsRequest parses a request; its one message is the prompt.
func (s *Server) completionsRequest(w http.ResponseWriter, r *http.Request) (Request, *refusal) {
	req := Request{API: Completions, Header: r.Header}
	data, e := s.openaiData(w, r, &req)
	if e != nil {
		return req, e
	}
	var body completionsBody
	unknown, err := decodeStrict(data, &body)
	if err != nil {
		return req, wrong("We could not parse the JSON body of your request: %v", err)
	}
	if unknown != "" {
		return req, wrong("Unrecognized request argument supplied: %s", unknown)
	}
	req.Model, req.Stream = body.Model, body.Stream
	if e := body.check(&req); e != nil && !s.opts.Lenient {
		return req, e
	}
	return req, s.openaiFits(body.Model, len(data))
}

func (b *completionsBody) check(req *Request) *refusal {
	prompt := ""
	if b.MaxTokens != nil {
		req.MaxTokens = *b.MaxTokens
	}
	entry, known := catalog.Lookup("completions", b.Model)
	_, chats := catalog.Lookup("openai", b.Model)
	penalty := func(p *float64) bool { return p != nil && (*p < -2 || *p > 2) }
	switch {
	case b.Model == "":
		return wrong("you must provide a model parameter")
	case chats && !known:
		return &refusal{code: 404, kind: "invalid_request_error", message: "This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?"}
	case json.Unmarshal(b.Prompt, &prompt) != nil || prompt == "":
		return wrong("Invalid 'prompt': the simulator takes one string that is not empty.")
	case req.MaxTokens < 0, b.MaxTokens != nil && req.MaxTokens == 0:
		return wrong("%d is less than the minimum of 1 - 'max_tokens'", req.MaxTokens)
	case known && req.MaxTokens > entry.MaxOutput:
		return wrong("max_tokens is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.", req.MaxTokens, entry.MaxOutput, req.MaxTokens)
	case known && req.MaxTokens+model.Tokens(len(prompt)) > entry.ContextWindow:
		n := model.Tokens(len(prompt))
		return wrong("This model's maximum context length is %d tokens, however you requested %d tokens (%d in your prompt; %d for the completion). Please reduce your prompt; or completion length.",
			entry.ContextWindow, n+req.MaxTokens, n, req.MaxTokens)
	case b.Temperature != nil && (*b.Temperature < 0 || *b.Temperature > 2):
		return wrong("%v is not between 0 and 2 - 'temperature'", *b.Temperature)
	case b.TopP != nil && (*b.TopP < 0 || *b.TopP > 1):
		return wrong("%v is not between 0 and 1 - 'top_p'", *b.TopP)
	case penalty(b.PresencePenalty) || penalty(b.FrequencyPenalty):
		return wrong("a penalty is not between -2 and 2 - 'presence_penalty'")
	case b.StreamOptions != nil && !b.Stream:
		return wrong("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if e := readStops(b.Stop, req); e != nil {
		return e
	}
	req.includeUsed = b.StreamOptions != nil && b.StreamOptions.IncludeUsage
	req.Messages = []Message{{Role: "user", Text: prompt}}
	// The cache works on tokens, not messages: on pieces of a length that any prompt has.
	for text := []byte(prompt); len(text) > 0; {
		n := min(len(text), 512)
		req.parts = append(req.parts, part{bytes: text[:n]})
		text = text[n:]
	}
	return nil
}

// readStops parses stop sequences of Chat Completions and Completions.
func readStops(raw json.RawMessage, req *Request) *refusal {
	if raw == nil {
		return nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		req.Stop = []string{one}
	} else if err := json.Unmarshal(raw, &req.Stop); err != nil || len(req.Stop) > 4 {
		return wrong("Invalid 'stop': expected a string or an array with maximum length 4.")
	}
	return nil
}

func completionsChunk(req Request, choices []obj) obj {
	return obj{"id": fmt.Sprintf("cmpl-sim-%06d", req.N), "object": "text_completion", "created": created, "model": req.Model, "choices": choices}
}

func completionsStop(turn Turn) any {
	if stop := openaiStops[turn.stop()]; stop != "tool_calls" {
		return stop
	}
	return "stop" // there are no calls here
}

// completionsWhole is the answer without streaming.
func completionsWhole(req Request, turn Turn, usage Usage) obj {
	out := completionsChunk(req, []obj{{"index": 0, "text": turn.text(), "logprobs": nil, "finish_reason": completionsStop(turn)}})
	out["usage"] = openaiUsage(usage)
	return out
}

// completionsFrames is the answer as a stream: only the text of a turn.
func completionsFrames(req Request, turn Turn, usage Usage) []frame {
	var frames []frame
	add := func(body obj) { frames = append(frames, frame{data: encode(body)}) }
	for _, p := range pieces(turn.text(), turn.Chunk) {
		add(completionsChunk(req, []obj{{"index": 0, "text": p, "logprobs": nil, "finish_reason": nil}}))
	}
	add(completionsChunk(req, []obj{{"index": 0, "text": "", "logprobs": nil, "finish_reason": completionsStop(turn)}}))
	if req.includeUsed && !turn.NoUsage {
		last := completionsChunk(req, []obj{})
		last["usage"] = openaiUsage(usage)
		add(last)
	}
	if !turn.NoDone {
		frames = append(frames, frame{data: []byte("[DONE]")})
	}
	return frames
}
