package llmsim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"chorus/internal/model"
)

// openaiRoutes are what OpenAI and OpenRouter offer beside Chat Completions.
func (s *Server) openaiRoutes() {
	s.mux.HandleFunc("POST /v1/responses", s.speak(Responses, s.responsesRequest, responsesWhole, responsesFrames))
	s.mux.HandleFunc("POST /v1/completions", s.speak(Completions, s.completionsRequest, completionsWhole, completionsFrames))
	s.mux.HandleFunc("POST /api/v1/chat/completions", s.speak(OpenRouter, s.routerRequest, openaiWhole, routerFrames))
	s.mux.HandleFunc("GET /api/v1/models", s.routerModels)
}

// speak answers requests of one format.
func (s *Server) speak(
	api API, request func(http.ResponseWriter, *http.Request) (Request, *refusal),
	whole func(Request, Turn, Usage) obj, frames func(Request, Turn, Usage) []frame,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req, e := request(w, r)
		req = s.record(req)
		if e != nil {
			s.settle(req.N, Rejected)
			s.refuse(w, api, e)
			return
		}
		turn := s.next(req)
		if turn.Fault != nil && turn.Fault.Kind == Status {
			s.settle(req.N, Rejected)
			s.refuseFault(w, api, turn.Fault)
			return
		}
		usage := s.usage(req, turn)
		if !req.Stream {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(encode(whole(req, turn, usage)))
			s.settle(req.N, Answered)
			return
		}
		s.stream(w, r, req.N, api, turn, frames(req, turn, usage))
	}
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

// openaiData takes the body of a request and looks at its key.
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

// openaiFits refuses models that are not there and requests that are too long.
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

// responsesCheck holds a request against the rules of Responses and fills in what
// it says.
type responsesCheck struct {
	req     *Request
	body    *responsesBody
	called  []string // calls so far
	pending []string // of those, the ones without a result
	alone   bool     // the item before was reasoning
	sealed  bool     // reasoning is wanted encrypted
}

func (c *responsesCheck) all() *refusal {
	for _, check := range []func() *refusal{c.settings, c.tools, c.items} {
		if e := check(); e != nil {
			return e
		}
	}
	return nil
}

func (c *responsesCheck) settings() *refusal {
	b := c.body
	entry, known := model.Lookup("openai", b.Model)
	if b.MaxOutputTokens != nil {
		c.req.MaxTokens = *b.MaxOutputTokens
	}
	for _, include := range b.Include {
		if include != "reasoning.encrypted_content" {
			return wrong("Invalid value: '%s'. Supported values are: 'reasoning.encrypted_content' and others that the simulator does not know.", include)
		}
		c.sealed = true
	}
	c.req.sealed = c.sealed
	switch {
	case b.Model == "":
		return wrong("Missing required parameter: 'model'.")
	case b.MaxOutputTokens != nil && *b.MaxOutputTokens < 16:
		return wrong("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", *b.MaxOutputTokens)
	case known && c.req.MaxTokens > entry.MaxOutput:
		return wrong("Invalid 'max_output_tokens': integer above maximum value. Expected a value <= %d, but got %d instead.", entry.MaxOutput, c.req.MaxTokens)
	case b.Temperature != nil && (*b.Temperature < 0 || *b.Temperature > 2):
		return wrong("Invalid 'temperature': decimal out of range.")
	case known && entry.NoSampling && (b.Temperature != nil || b.TopP != nil):
		return wrong("Unsupported parameter: 'temperature' is not supported with this model.")
	case c.sealed && known && !entry.Thinking:
		return wrong("Encrypted content is not supported with this model.")
	case c.sealed && (b.Store == nil || *b.Store):
		return wrong("Encrypted content is only simulated for requests with 'store' set to false.")
	case b.Reasoning != nil && known && !entry.Thinking:
		return wrong("Unsupported parameter: 'reasoning.effort' is not supported with this model.")
	}
	return c.effort(entry)
}

func (c *responsesCheck) effort(entry model.Entry) *refusal {
	all := []string{"low", "medium", "high"}
	if entry.LeastEffort != "" {
		all = all[slices.Index(all, entry.LeastEffort):]
	}
	if r := c.body.Reasoning; r != nil && r.Effort != "" && !slices.Contains(all, r.Effort) {
		return wrong("Unsupported value: '%s' is not supported with the '%s' model. Supported values are: '%s'.", r.Effort, c.body.Model, strings.Join(all, "', '"))
	}
	return nil
}

func (c *responsesCheck) tools() *refusal {
	if c.body.Instructions != "" {
		c.req.parts = append(c.req.parts, part{bytes: []byte(c.body.Instructions)})
	}
	for i, raw := range c.body.Tools {
		var t struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Strict      *bool           `json:"strict"`
		}
		unknown, err := decodeStrict(raw, &t)
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case err != nil:
			return wrong("Invalid 'tools[%d]': %v", i, err)
		case unknown != "" && t.Name == "":
			return wrong("Missing required parameter: 'tools[%d].name'.", i)
		case unknown != "":
			return wrong("Unknown parameter: 'tools[%d].%s'.", i, unknown)
		case t.Type != "function":
			return wrong("Invalid value: '%s'. The simulator supports only: 'function'.", t.Type)
		case !toolName.MatchString(t.Name) || len(t.Name) > 64:
			return wrong("Invalid 'tools[%d].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i)
		case json.Unmarshal(t.Parameters, &schema) != nil || schema.Type != "object":
			return wrong("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", t.Name)
		case t.Strict == nil || *t.Strict:
			return wrong("Invalid schema for function '%s': In context=(), 'additionalProperties' is required to be supplied and to be false.", t.Name)
		}
		c.req.Tools = append(c.req.Tools, t.Name)
		c.req.parts = append(c.req.parts, part{bytes: raw})
	}
	return nil
}

func (c *responsesCheck) items() *refusal {
	if len(c.body.Input) == 0 {
		return wrong("Missing required parameter: 'input'.")
	}
	for i, raw := range c.body.Input {
		var it responsesItem
		unknown, err := decodeStrict(raw, &it)
		switch {
		case err != nil:
			return wrong("Invalid type for 'input[%d]': %v", i, err)
		case unknown != "":
			return wrong("Unknown parameter: 'input[%d].%s'.", i, unknown)
		}
		c.req.parts = append(c.req.parts, part{bytes: raw})
		if e := c.item(i, it); e != nil {
			return e
		}
		c.alone = it.Type == "reasoning"
	}
	if c.alone {
		return wrong("Item of type 'reasoning' was provided without its required following item.")
	}
	if len(c.pending) > 0 {
		return wrong("No tool output found for function call %s.", c.pending[0])
	}
	return nil
}

func (c *responsesCheck) item(i int, it responsesItem) *refusal {
	follows := it.Type == "function_call" || it.Type == "reasoning" || it.Role == "assistant"
	if c.alone && !follows {
		return wrong("Item of type 'reasoning' was provided without its required following item.")
	}
	switch it.Type {
	case "message", "":
		return c.message(i, it)
	case "reasoning":
		return c.reasoning(i, it)
	case "function_call":
		if it.CallID == "" || it.Name == "" || it.Arguments == nil {
			return wrong("Missing required parameter: 'input[%d].call_id', 'name' or 'arguments'.", i)
		}
		c.called, c.pending = append(c.called, it.CallID), append(c.pending, it.CallID)
		turn := c.turn("assistant")
		turn.Calls = append(turn.Calls, Used{ID: it.CallID, Name: it.Name, Args: json.RawMessage(*it.Arguments)})
	case "function_call_output":
		if !slices.Contains(c.called, it.CallID) {
			return wrong("No tool call found for function call output with call_id %s.", it.CallID)
		}
		c.pending = slices.DeleteFunc(c.pending, func(id string) bool { return id == it.CallID })
		var out Message
		if e := c.content(fmt.Sprintf("input[%d].output", i), "tool", it.Output, &out); e != nil {
			return e
		}
		turn := c.turn("tool")
		turn.Images += out.Images
		turn.Results = append(turn.Results, Result{Call: it.CallID, Text: out.Text, Images: out.Images})
	default:
		return wrong("Invalid value: '%s'. Supported values are: 'message', 'function_call', 'function_call_output', 'reasoning'.", it.Type)
	}
	return nil
}

// turn is the message that an item belongs to: the items of one answer stand in a
// row, and so do results.
func (c *responsesCheck) turn(role string) *Message {
	n := len(c.req.Messages)
	if n == 0 || c.req.Messages[n-1].Role != role || role == "user" {
		c.req.Messages = append(c.req.Messages, Message{Role: role})
		n++
	}
	return &c.req.Messages[n-1]
}

func (c *responsesCheck) message(i int, it responsesItem) *refusal {
	if !slices.Contains([]string{"user", "assistant", "system", "developer"}, it.Role) {
		return wrong("Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", it.Role)
	}
	var out Message
	if e := c.content(fmt.Sprintf("input[%d].content", i), it.Role, it.Content, &out); e != nil {
		return e
	}
	turn := c.turn(it.Role)
	turn.Text += out.Text
	turn.Images += out.Images
	return nil
}

func (c *responsesCheck) reasoning(i int, it responsesItem) *refusal {
	text := ""
	for _, s := range it.Summary {
		text += s.Text
	}
	switch {
	case it.Summary == nil:
		return wrong("Missing required parameter: 'input[%d].summary'.", i)
	case it.Encrypted == "":
		return &refusal{code: 404, kind: "invalid_request_error", message: "Item with id '" + it.ID + "' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."}
	case strings.HasPrefix(it.Encrypted, "sig-") && it.Encrypted != (Turn{Thinking: text}).signature():
		return &refusal{code: 400, kind: "invalid_request_error", errCode: "invalid_encrypted_content", message: "The encrypted content for item " + it.ID + " could not be verified."}
	}
	said := text + "|" + it.Encrypted
	if text == "" {
		said = "redacted|" + it.Encrypted
	}
	turn := c.turn("assistant")
	turn.Thinking = append(turn.Thinking, said)
	return nil
}

// content reads text, or a list of parts.
func (c *responsesCheck) content(where, role string, raw json.RawMessage, out *Message) *refusal {
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &out.Text); err != nil {
			return wrong("Invalid '%s': %v", where, err)
		}
		return nil
	}
	var parts []responsesPart
	unknown, err := decodeStrict(raw, &parts)
	if err != nil || unknown != "" || len(parts) == 0 {
		return wrong("Invalid type for '%s': expected one of an array of objects or string (%v %s)", where, err, unknown)
	}
	for _, p := range parts {
		switch {
		case p.Type == "output_text" && role == "assistant", p.Type == "input_text" && role != "assistant":
			out.Text += p.Text
		case p.Type == "refusal" && role == "assistant":
			out.Text += p.Refusal
		case p.Type == "input_image" && (role == "user" || role == "tool"):
			head, data, ok := strings.Cut(p.ImageURL, ";base64,")
			if !ok || !strings.HasPrefix(head, "data:image/") {
				return wrong("Invalid '%s'. Expected a valid URL, but got a value with an invalid format.", where)
			}
			if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" {
				return wrong("Invalid base64 image_url.")
			}
			out.Images++
		case role == "assistant":
			return wrong("Invalid value: '%s'. Supported values are: 'output_text' and 'refusal'.", p.Type)
		default:
			return wrong("Invalid value: '%s'. Supported values are: 'input_text', 'input_image', and 'input_file'.", p.Type)
		}
	}
	return nil
}
