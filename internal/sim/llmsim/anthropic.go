package llmsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"chorus/internal/model"
)

// anthropicBody is a request to /v1/messages. Fields that are only passed on are raw.
type anthropicBody struct {
	Model         string             `json:"model"`
	MaxTokens     *int               `json:"max_tokens"`
	Messages      []json.RawMessage  `json:"messages"`
	System        json.RawMessage    `json:"system"`
	Tools         []json.RawMessage  `json:"tools"`
	Stream        bool               `json:"stream"`
	Temperature   *float64           `json:"temperature"`
	TopP          *float64           `json:"top_p"`
	TopK          *int               `json:"top_k"`
	StopSequences []string           `json:"stop_sequences"`
	Thinking      *anthropicThinking `json:"thinking"`
	ToolChoice    json.RawMessage    `json:"tool_choice"`
	Metadata      json.RawMessage    `json:"metadata"`
	ServiceTier   string             `json:"service_tier"`
	OutputConfig  json.RawMessage    `json:"output_config"`
	CacheControl  json.RawMessage    `json:"cache_control"`
	// Only with the beta header of that name.
	ContextManagement json.RawMessage `json:"context_management"`
}

type anthropicThinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens"`
	Display string `json:"display"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type anthropicBlock struct {
	Type         string           `json:"type"`
	Text         *string          `json:"text"`
	Source       *anthropicSource `json:"source"`
	ID           string           `json:"id"`
	Name         string           `json:"name"`
	Input        json.RawMessage  `json:"input"`
	ToolUseID    string           `json:"tool_use_id"`
	Content      json.RawMessage  `json:"content"`
	IsError      bool             `json:"is_error"`
	Thinking     *string          `json:"thinking"`
	Signature    *string          `json:"signature"`
	Data         string           `json:"data"`
	CacheControl json.RawMessage  `json:"cache_control"`
}

type anthropicSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

type anthropicTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	Type         string          `json:"type"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl json.RawMessage `json:"cache_control"`
}

// invalid is Anthropic's answer to an invalid request.
func invalid(format string, args ...any) *refusal {
	return &refusal{code: 400, kind: "invalid_request_error", message: fmt.Sprintf(format, args...)}
}

func (s *Server) anthropicKey(r *http.Request) *refusal {
	key := r.Header.Get("x-api-key")
	if key == "" {
		key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	switch {
	case key == "" && s.opts.NoKey, s.known(key):
		return nil
	case key == "":
		return &refusal{code: 401, kind: "authentication_error", message: "x-api-key header is required"}
	default:
		return &refusal{code: 401, kind: "authentication_error", message: "invalid x-api-key"}
	}
}

// usage is what the answer says it used.
func (s *Server) usage(req Request, turn Turn) Usage {
	if turn.Usage != nil {
		return *turn.Usage
	}
	u := s.cache.count(req.API, req.Model, req.parts)
	u.Output = model.Tokens(turn.output())
	return u
}

// anthropicCount answers POST /v1/messages/count_tokens.
func (s *Server) anthropicCount(w http.ResponseWriter, r *http.Request) {
	if e := s.anthropicKey(r); e != nil {
		s.refuse(w, Anthropic, e)
		return
	}
	data, e := read(w, r)
	if e != nil {
		s.refuse(w, Anthropic, e)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(map[string]int{"input_tokens": model.Tokens(len(data))}))
}

// anthropicRequest parses and validates a request. The Request is as complete as possible, even if it is refused.
func (s *Server) anthropicRequest(w http.ResponseWriter, r *http.Request) (Request, *refusal) {
	req := Request{API: Anthropic, Header: r.Header}
	data, e := read(w, r)
	if e != nil {
		return req, e
	}
	if !s.opts.Lenient {
		req.Body = data
	}
	if e := s.anthropicKey(r); e != nil {
		return req, e
	}
	if r.Header.Get("anthropic-version") == "" {
		return req, invalid("anthropic-version: header is required")
	}
	var body anthropicBody
	unknown, err := decodeStrict(data, &body)
	if err != nil {
		return req, invalid("The request body is not valid JSON: %v", err)
	}
	if body.ContextManagement != nil && !beta(r.Header, "context-management") {
		unknown = "context_management"
	}
	if unknown != "" {
		return req, invalid("%s: Extra inputs are not permitted", unknown)
	}
	req.Model, req.Stream, req.Stop = body.Model, body.Stream, body.StopSequences
	if body.MaxTokens != nil {
		req.MaxTokens = *body.MaxTokens
	}
	check := &anthropicCheck{req: &req, body: &body, lenient: s.opts.Lenient}
	if e := check.all(); e != nil && !s.opts.Lenient {
		return req, e
	}
	if !s.offered(body.Model) {
		return req, &refusal{code: 404, kind: "not_found_error", message: "model: " + body.Model}
	}
	if n := model.Tokens(len(data)); s.opts.Window > 0 && n > s.opts.Window {
		return req, invalid("prompt is too long: %d tokens > %d maximum", n, s.opts.Window)
	}
	return req, nil
}

// beta reports whether a request enables a beta feature. The names end with a date.
func beta(h http.Header, name string) bool {
	for _, list := range h.Values("anthropic-beta") {
		for one := range strings.SplitSeq(list, ",") {
			if strings.HasPrefix(strings.TrimSpace(one), name+"-20") {
				return true
			}
		}
	}
	return false
}

// blocks parses a content that is a string or a list of blocks.
func blocks(raw json.RawMessage, where string) ([]anthropicBlock, *refusal) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, invalid("%s: %v", where, err)
		}
		return []anthropicBlock{{Type: "text", Text: &text}}, nil
	}
	if len(raw) == 0 || raw[0] != '[' {
		return nil, invalid("%s: Input should be a valid list", where)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, invalid("%s: %v", where, err)
	}
	var out []anthropicBlock
	for i, item := range list {
		var b anthropicBlock
		unknown, err := decodeStrict(item, &b)
		if err != nil {
			return nil, invalid("%s.%d: %v", where, i, err)
		}
		if unknown != "" {
			return nil, invalid("%s.%d.%s.%s: Extra inputs are not permitted", where, i, b.Type, unknown)
		}
		out = append(out, b)
	}
	return out, nil
}
