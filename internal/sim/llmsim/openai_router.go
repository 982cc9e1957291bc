package llmsim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"chorus/internal/model/catalog"
)

// routerFields are the fields that only OpenRouter knows.
type routerFields struct {
	Usage *struct {
		Include bool `json:"include"`
	} `json:"usage"`
	Reasoning *struct {
		Effort    string `json:"effort"`
		MaxTokens *int   `json:"max_tokens"`
		Exclude   bool   `json:"exclude"`
		Enabled   *bool  `json:"enabled"`
	} `json:"reasoning"`
	Provider   json.RawMessage `json:"provider"`
	Models     []string        `json:"models"`
	Route      string          `json:"route"`
	Transforms []string        `json:"transforms"`
	Plugins    json.RawMessage `json:"plugins"`
	TopK       *int            `json:"top_k"`
	MinP       *float64        `json:"min_p"`
}

// used returns the name of a set field that is specific to OpenRouter.
func (f routerFields) used() string {
	switch {
	case f.Usage != nil:
		return "usage"
	case f.Reasoning != nil:
		return "reasoning"
	case f.Provider != nil:
		return "provider"
	case f.Models != nil:
		return "models"
	case f.Route != "":
		return "route"
	case f.Transforms != nil:
		return "transforms"
	case f.Plugins != nil:
		return "plugins"
	case f.TopK != nil:
		return "top_k"
	case f.MinP != nil:
		return "min_p"
	}
	return ""
}

// routerDetail is a piece of reasoning that is sent back and forth.
type routerDetail struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Summary   string `json:"summary"`
	Data      string `json:"data"`
	Signature string `json:"signature"`
	ID        string `json:"id"`
	Format    string `json:"format"`
	Index     int    `json:"index"`
}

// routed is OpenRouter's answer to an invalid request: its codes are statuses.
func routed(format string, args ...any) *refusal {
	return &refusal{code: 400, message: fmt.Sprintf(format, args...)}
}

// routerRequest parses a request to /api/v1/chat/completions: Chat Completions with OpenRouter's fields, under the vendor's rules.
func (s *Server) routerRequest(w http.ResponseWriter, r *http.Request) (Request, *refusal) {
	return s.openaiRequestAs(OpenRouter, w, r)
}

// routerSettings are the rules for a request to OpenRouter.
func (c *openaiCheck) routerSettings() *refusal {
	b := c.body
	if b.MaxTokens != nil {
		c.req.MaxTokens = *b.MaxTokens
	} else if b.MaxCompletionTokens != nil {
		c.req.MaxTokens = *b.MaxCompletionTokens
	}
	c.req.includeUsed = b.Usage != nil && b.Usage.Include || b.StreamOptions != nil && b.StreamOptions.IncludeUsage
	if e := readStops(b.Stop, c.req); e != nil {
		return e
	}
	anthropic := strings.HasPrefix(b.Model, "anthropic/")
	marks := 0
	for _, raw := range b.Messages {
		marks += strings.Count(string(raw), `"cache_control":{`)
	}
	switch {
	case b.Model == "":
		return routed("No models provided")
	case !strings.Contains(b.Model, "/"):
		return routed("%s is not a valid model ID", b.Model)
	case b.Temperature != nil && (*b.Temperature < 0 || *b.Temperature > 2):
		return routed("Input validation error: temperature")
	case anthropic && marks > 4:
		return routed("Provider returned error: A maximum of 4 blocks with cache_control may be provided. Found %d.", marks)
	case b.Reasoning != nil && b.Reasoning.Effort != "" && b.Reasoning.MaxTokens != nil:
		return routed("Only one of \"reasoning.effort\" and \"reasoning.max_tokens\" may be specified")
	case anthropic && b.Temperature != nil && b.TopP != nil:
		return routed("Provider returned error: `temperature` and `top_p` cannot both be specified for this model. Please use only one.")
	case anthropic && b.Reasoning != nil && b.Reasoning.MaxTokens != nil && c.req.MaxTokens > 0 && c.req.MaxTokens <= *b.Reasoning.MaxTokens:
		return routed("Provider returned error: `max_tokens` must be greater than `thinking.budget_tokens`.")
	}
	return nil
}

// routerThinking checks the messages against Anthropic's rules for thinking.
func (c *openaiCheck) routerThinking() *refusal {
	if c.body.Reasoning == nil || !strings.HasPrefix(c.body.Model, "anthropic/") {
		return nil
	}
	if c.body.Temperature != nil && *c.body.Temperature != 1 {
		return routed("Provider returned error: `temperature` may only be set to 1 when thinking is enabled.")
	}
	for i := len(c.req.Messages) - 1; i >= 0; i-- {
		switch m := c.req.Messages[i]; {
		case m.Role == "user":
			return nil
		case m.Role == "assistant" && len(m.Calls) == 0:
			return routed("Provider returned error: an assistant message at the end is a prefill, and cannot be gone on with while thinking is enabled")
		case m.Role == "assistant" && len(m.Thinking) == 0:
			return routed("Provider returned error: messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", i)
		case m.Role == "assistant":
			return nil
		}
	}
	return nil
}

// thoughts parses the reasoning that an answer sends back.
func (c *openaiCheck) thoughts(i int, m openaiMessage, out *Message) *refusal {
	if len(m.ReasoningDetails) == 0 {
		return nil
	}
	if c.req.API != OpenRouter {
		return wrong("Unknown parameter: 'messages[%d].reasoning_details'.", i)
	}
	if m.Role != "assistant" {
		return routed("messages[%d]: only an assistant has reasoning_details", i)
	}
	for _, raw := range m.ReasoningDetails {
		var d routerDetail
		unknown, err := decodeStrict(raw, &d)
		switch {
		case err != nil || unknown != "":
			return routed("messages[%d].reasoning_details: %v %s", i, err, unknown)
		case d.Type == "reasoning.text":
			if strings.HasPrefix(d.Signature, "sig-") && d.Signature != (Turn{Thinking: d.Text}).signature() {
				return routed("Provider returned error: Invalid `signature` in `thinking` block")
			}
			out.Thinking = append(out.Thinking, d.Text+"|"+d.Signature)
		case d.Type == "reasoning.encrypted" && d.Data != "":
			out.Thinking = append(out.Thinking, "redacted|"+d.Data)
		default:
			return routed("messages[%d].reasoning_details: invalid %s", i, d.Type)
		}
	}
	return nil
}

// routerModels lists the catalog with OpenRouter's names. It needs no key, but rejects a wrong one.
func (s *Server) routerModels(w http.ResponseWriter, r *http.Request) {
	if e := s.openaiKey(r); e != nil {
		s.refuse(w, OpenRouter, e)
		return
	}
	names := s.opts.Models
	if len(names) == 0 {
		for _, e := range catalog.All() {
			if e.Provider == "anthropic" || e.Provider == "openai" {
				names = append(names, e.Provider+"/"+e.Model)
			}
		}
	}
	data := []obj{}
	for _, name := range names {
		data = append(data, obj{"id": name, "name": name, "created": created})
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(obj{"data": data}))
}

// processing is the comment that keeps a connection alive.
var processing = frame{line: true, data: []byte(": OPENROUTER PROCESSING\n")}

// routerFrames is the answer as OpenRouter streams it: comments, reasoning in two
// fields at once, and what it cost.
func routerFrames(req Request, turn Turn, usage Usage) []frame {
	b := &openaiBuilder{req: req, frames: []frame{processing}}
	b.delta(obj{"role": "assistant", "content": ""})
	detail := func(fields obj) []obj {
		return []obj{with(obj{"format": "anthropic-claude-v1", "index": 0}, fields)}
	}
	for _, p := range pieces(turn.Thinking, turn.Chunk) {
		b.delta(obj{"content": "", "reasoning": p, "reasoning_details": detail(obj{"type": "reasoning.text", "text": p})})
	}
	if turn.Thinking != "" {
		b.delta(obj{"content": "", "reasoning": nil, "reasoning_details": detail(obj{"type": "reasoning.text", "signature": turn.signature()})})
	}
	if turn.Redacted != "" {
		b.delta(obj{"content": "", "reasoning": nil, "reasoning_details": detail(obj{"type": "reasoning.encrypted", "data": turn.Redacted})})
	}
	for _, p := range pieces(turn.text(), turn.Chunk) {
		b.delta(obj{"content": p})
	}
	for _, p := range pieces(turn.Refusal, turn.Chunk) {
		b.delta(obj{"refusal": p})
	}
	b.calls(turn)
	b.chunk([]obj{{"index": 0, "delta": obj{"content": ""}, "finish_reason": openaiStops[turn.stop()], "native_finish_reason": turn.stop()}}, nil)
	if req.includeUsed && !turn.NoUsage {
		used := openaiUsage(usage)
		used["cost"], used["is_byok"] = 0.00123, false
		b.chunk([]obj{{"index": 0, "delta": obj{"content": ""}, "finish_reason": nil}}, used)
	}
	if !turn.NoDone {
		b.frames = append(b.frames, frame{data: []byte("[DONE]")})
	}
	return b.frames
}

// routerCodes are the statuses for the kinds of errors in a stream.
var routerCodes = map[string]int{"rate_limit_error": 429, "invalid_request_error": 400, "authentication_error": 401}

// routerErrorFrame is an error in the middle of an answer: a chunk that also ends it.
func routerErrorFrame(f *Fault) frame {
	var code any = 502
	if n := routerCodes[f.Type]; n != 0 {
		code = n
	}
	return frame{data: encode(obj{
		"id": "gen-sim", "object": "chat.completion.chunk", "created": created, "provider": "sim",
		"error":   obj{"code": code, "message": cmp.Or(f.Message, "Provider disconnected unexpectedly")},
		"choices": []obj{{"index": 0, "delta": obj{"content": ""}, "finish_reason": "error"}},
	})}
}

// routerError is an HTTP error in OpenRouter's format.
func routerError(e *refusal) []byte {
	return encode(obj{"error": obj{"code": e.code, "message": e.message, "metadata": obj{"provider_name": "sim"}}, "user_id": "user_sim"})
}
