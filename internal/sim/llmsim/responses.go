package llmsim

import (
	"encoding/json"
	"fmt"
	"net/http"

	"chorus/internal/model"
)

// openaiRoutes are the routes of OpenAI and OpenRouter besides Chat Completions.
func (s *Server) openaiRoutes() {
	s.mux.HandleFunc("POST /v1/responses", s.speak(Responses, s.responsesRequest, responsesWhole, responsesFrames))
	s.mux.HandleFunc("POST /v1/completions", s.speak(Completions, s.completionsRequest, completionsWhole, completionsFrames))
	s.mux.HandleFunc("POST /api/v1/chat/completions", s.speak(OpenRouter, s.routerRequest, openaiWhole, routerFrames))
	s.mux.HandleFunc("GET /api/v1/models", s.routerModels)
}

// responsesBody is a request to /v1/responses.
type responsesBody struct {
	Model             string            `json:"model"`
	Input             []json.RawMessage `json:"input"`
	Instructions      string            `json:"instructions"`
	Tools             []json.RawMessage `json:"tools"`
	Stream            bool              `json:"stream"`
	Store             *bool             `json:"store"`
	Include           []string          `json:"include"`
	MaxOutputTokens   *int              `json:"max_output_tokens"`
	Temperature       *float64          `json:"temperature"`
	TopP              *float64          `json:"top_p"`
	Reasoning         *reasoningWish    `json:"reasoning"`
	ToolChoice        json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls *bool             `json:"parallel_tool_calls"`
	Text              json.RawMessage   `json:"text"`
	Truncation        string            `json:"truncation"`
	Metadata          json.RawMessage   `json:"metadata"`
	ServiceTier       string            `json:"service_tier"`
	PromptCacheKey    string            `json:"prompt_cache_key"`
	SafetyIdentifier  string            `json:"safety_identifier"`
	ClientMetadata    json.RawMessage   `json:"client_metadata"` // of codex
}

type reasoningWish struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary"`
}

// responsesItem is one item of the input.
type responsesItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Encrypted string          `json:"encrypted_content"`
	Summary   []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"summary"`
}

type responsesPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL string `json:"image_url"`
	Detail   string `json:"detail"`
	// Annotations are required in messages of the assistant.
	Annotations *[]json.RawMessage `json:"annotations"`
}

func (s *Server) responsesRequest(w http.ResponseWriter, r *http.Request) (Request, *refusal) {
	req := Request{API: Responses, Header: r.Header}
	data, e := s.openaiData(w, r, &req)
	if e != nil {
		return req, e
	}
	var body responsesBody
	unknown, err := decodeStrict(data, &body)
	switch {
	case err != nil:
		return req, wrong("We could not parse the JSON body of your request: %v", err)
	case unknown == "messages":
		return req, wrong("Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'. Try again with the new parameter. See https://platform.openai.com/docs/api-reference/responses/create")
	case unknown != "":
		return req, wrong("Unknown parameter: '%s'.", unknown)
	}
	req.Model, req.Stream, req.System = body.Model, body.Stream, body.Instructions
	check := &responsesCheck{req: &req, body: &body}
	if e := check.all(); e != nil && !s.opts.Lenient {
		return req, e
	}
	return req, s.openaiFits(body.Model, len(data))
}

// openaiData reads the body of a request and checks its key.
func (s *Server) openaiData(w http.ResponseWriter, r *http.Request, req *Request) ([]byte, *refusal) {
	data, e := read(w, r)
	if e != nil {
		return nil, e
	}
	if !s.opts.Lenient {
		req.Body = data
	}
	return data, s.openaiKey(r)
}

// openaiFits refuses unknown models and requests that are too long.
func (s *Server) openaiFits(name string, size int) *refusal {
	if !s.offered(name) {
		return &refusal{code: 404, kind: "invalid_request_error", errCode: "model_not_found", message: "The model `" + name + "` does not exist or you do not have access to it."}
	}
	if n := model.Tokens(size); s.opts.Window > 0 && n > s.opts.Window {
		return &refusal{code: 400, kind: "invalid_request_error", errCode: "context_length_exceeded",
			message: fmt.Sprintf("Your input exceeds the context window of this model (%d tokens). Please adjust your input of %d tokens and try again. This model's maximum context length is %d tokens.", s.opts.Window, n, s.opts.Window)}
	}
	return nil
}
