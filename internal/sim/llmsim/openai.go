package llmsim

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"chorus/internal/model/catalog"
)

// openaiBody is a request to /v1/chat/completions.
type openaiBody struct {
	Model               string            `json:"model"`
	Messages            []json.RawMessage `json:"messages"`
	Tools               []json.RawMessage `json:"tools"`
	Stream              bool              `json:"stream"`
	StreamOptions       *openaiStream     `json:"stream_options"`
	MaxTokens           *int              `json:"max_tokens"`
	MaxCompletionTokens *int              `json:"max_completion_tokens"`
	Temperature         *float64          `json:"temperature"`
	TopP                *float64          `json:"top_p"`
	Stop                json.RawMessage   `json:"stop"`
	ReasoningEffort     string            `json:"reasoning_effort"`
	ToolChoice          json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"`
	ResponseFormat      json.RawMessage   `json:"response_format"`
	Seed                *int              `json:"seed"`
	User                string            `json:"user"`
	Store               *bool             `json:"store"`
	Metadata            json.RawMessage   `json:"metadata"`
	N                   *int              `json:"n"`
	PresencePenalty     *float64          `json:"presence_penalty"`
	FrequencyPenalty    *float64          `json:"frequency_penalty"`
	PromptCacheKey      string            `json:"prompt_cache_key"`
	SafetyIdentifier    string            `json:"safety_identifier"`
	Verbosity           string            `json:"verbosity"`

	routerFields
}

type openaiStream struct {
	IncludeUsage bool `json:"include_usage"`
}

type openaiMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	ToolCalls  []openaiCall    `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Refusal    *string         `json:"refusal"`

	ReasoningDetails []json.RawMessage `json:"reasoning_details"` // OpenRouter
}

type openaiCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

type openaiPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL *struct {
		URL    string `json:"url"`
		Detail string `json:"detail"`
	} `json:"image_url"`
	CacheControl *struct {
		Type string `json:"type"`
		TTL  string `json:"ttl"`
	} `json:"cache_control"` // OpenRouter
}

// wrong is OpenAI's answer to an invalid request.
func wrong(format string, args ...any) *refusal {
	return &refusal{code: 400, kind: "invalid_request_error", message: fmt.Sprintf(format, args...)}
}

func (s *Server) openaiKey(r *http.Request) *refusal {
	key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !bearer && s.opts.NoKey, bearer && s.known(key):
		return nil
	case !bearer || key == "":
		return &refusal{code: 401, kind: "invalid_request_error", message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."}
	default:
		return &refusal{code: 401, kind: "invalid_request_error", errCode: "invalid_api_key", message: "Incorrect API key provided: " + key + ". You can find your API key at https://platform.openai.com/account/api-keys."}
	}
}

func (s *Server) openaiRequest(w http.ResponseWriter, r *http.Request) (Request, *refusal) {
	return s.openaiRequestAs(OpenAI, w, r)
}

// openaiRequestAs parses a request to OpenAI or OpenRouter.
func (s *Server) openaiRequestAs(api API, w http.ResponseWriter, r *http.Request) (Request, *refusal) {
	req := Request{API: api, Header: r.Header}
	data, e := s.openaiData(w, r, &req)
	if e != nil {
		return req, e
	}
	var body openaiBody
	unknown, err := decodeStrict(data, &body)
	if err != nil {
		return req, wrong("We could not parse the JSON body of your request: %v", err)
	}
	if api == OpenAI && unknown == "" {
		unknown = body.used()
	}
	if unknown != "" {
		return req, wrong("Unrecognized request argument supplied: %s", unknown)
	}
	req.Model, req.Stream = body.Model, body.Stream
	check := &openaiCheck{req: &req, body: &body, lenient: s.opts.Lenient}
	if e := check.all(); e != nil && !s.opts.Lenient {
		return req, e
	}
	return req, s.openaiFits(body.Model, len(data))
}

// openaiCheck validates a request against OpenAI's rules and fills in its contents.
type openaiCheck struct {
	req     *Request
	body    *openaiBody
	lenient bool
	pending []string // calls of the last assistant message without a tool message so far
	answers bool     // tool messages may follow here
}

func (c *openaiCheck) all() *refusal {
	settings := c.settings
	last := func() *refusal { return nil }
	if c.req.API == OpenRouter {
		settings, last = c.routerSettings, c.routerThinking
	}
	for _, check := range []func() *refusal{settings, c.tools, c.messages, last} {
		if e := check(); e != nil && !c.lenient {
			return e
		}
	}
	return nil
}

func (c *openaiCheck) settings() *refusal {
	b := c.body
	entry, known := catalog.Lookup("openai", b.Model)
	if n := b.MaxCompletionTokens; n != nil {
		c.req.MaxTokens = *n
	} else if b.MaxTokens != nil {
		c.req.MaxTokens = *b.MaxTokens
	}
	switch {
	case b.Model == "":
		return wrong("you must provide a model parameter")
	case known && entry.Responses:
		return &refusal{code: 404, kind: "invalid_request_error", message: "This model is only supported in v1/responses and not in v1/chat/completions."}
	case b.MaxTokens != nil && b.MaxCompletionTokens != nil:
		return wrong("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case b.MaxTokens != nil && known && entry.NoSampling:
		return wrong("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	case known && c.req.MaxTokens > entry.MaxOutput:
		return wrong("max_tokens is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.", c.req.MaxTokens, entry.MaxOutput, c.req.MaxTokens)
	case b.Temperature != nil && (*b.Temperature < 0 || *b.Temperature > 2):
		return wrong("Invalid 'temperature': decimal out of range.")
	case known && entry.NoSampling && b.Temperature != nil && *b.Temperature != 1:
		return wrong("Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", *b.Temperature)
	case known && entry.NoSampling && (b.TopP != nil || b.Stop != nil):
		return wrong("Unsupported parameter: 'stop' is not supported with this model.")
	case b.StreamOptions != nil && !b.Stream:
		return wrong("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case b.ReasoningEffort != "" && known && !entry.Thinking:
		return wrong("Unrecognized request argument supplied: reasoning_effort")
	case known && len(b.Tools) > 0 && (entry.ToolEffort == "none" && b.ReasoningEffort != "none" || entry.ToolEffort == "omit" && b.ReasoningEffort != ""):
		return wrong("Function tools with reasoning_effort are not supported for %s in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", b.Model)
	}
	if e := readStops(b.Stop, c.req); e != nil {
		return e
	}
	c.req.includeUsed = b.StreamOptions != nil && b.StreamOptions.IncludeUsage
	return nil
}

func (c *openaiCheck) tools() *refusal {
	for i, raw := range c.body.Tools {
		var t struct {
			Type     string `json:"type"`
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
				Strict      *bool           `json:"strict"`
			} `json:"function"`
		}
		unknown, err := decodeStrict(raw, &t)
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case err != nil:
			return wrong("Invalid 'tools[%d]': %v", i, err)
		case unknown != "":
			return wrong("Unknown parameter: 'tools[%d].%s'.", i, unknown)
		case t.Type != "function":
			return wrong("Invalid value: '%s'. Supported values are: 'function'.", t.Type)
		case !toolName().MatchString(t.Function.Name) || len(t.Function.Name) > 64:
			return wrong("Invalid 'tools[%d].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i)
		case t.Function.Parameters != nil && (json.Unmarshal(t.Function.Parameters, &schema) != nil || schema.Type != "object"):
			return wrong("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", t.Function.Name)
		}
		c.req.Tools = append(c.req.Tools, t.Function.Name)
		c.req.parts = append(c.req.parts, part{bytes: raw})
	}
	return nil
}

func (c *openaiCheck) messages() *refusal {
	if len(c.body.Messages) == 0 {
		return wrong("Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for i, raw := range c.body.Messages {
		var m openaiMessage
		unknown, err := decodeStrict(raw, &m)
		if err != nil {
			return wrong("Invalid 'messages[%d]': %v", i, err)
		}
		if unknown != "" {
			return wrong("Unknown parameter: 'messages[%d].%s'.", i, unknown)
		}
		c.req.parts = append(c.req.parts, newPart(raw))
		if e := c.message(i, m); e != nil {
			return e
		}
	}
	return c.unanswered()
}

func (c *openaiCheck) message(i int, m openaiMessage) *refusal {
	if m.Role != "tool" {
		if e := c.unanswered(); e != nil {
			return e
		}
		c.answers = false
	}
	out := Message{Role: m.Role}
	if e := c.content(i, m, &out); e != nil {
		return e
	}
	if e := c.thoughts(i, m, &out); e != nil {
		return e
	}
	switch m.Role {
	case "system", "developer":
		c.req.System += out.Text
	case "user":
	case "assistant":
		for _, call := range m.ToolCalls {
			if call.ID == "" || call.Type != "function" || call.Function.Name == "" || call.Function.Arguments == nil {
				return wrong("Missing required parameter: 'messages[%d].tool_calls[0].function'.", i)
			}
			if len(call.ID) > 40 {
				return wrong("Invalid 'messages[%d].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length %d instead.", i, len(call.ID))
			}
			if !toolName().MatchString(call.Function.Name) || len(call.Function.Name) > 64 {
				return wrong("Invalid 'messages[%d].tool_calls[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i)
			}
			c.pending = append(c.pending, call.ID)
			c.answers = true
			out.Calls = append(out.Calls, Used{ID: call.ID, Name: call.Function.Name, Args: json.RawMessage(*call.Function.Arguments)})
		}
	case "tool":
		if !c.answers || !slices.Contains(c.pending, m.ToolCallID) {
			return wrong("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
		}
		c.pending = slices.DeleteFunc(c.pending, func(id string) bool { return id == m.ToolCallID })
		out.Results = []Result{{Call: m.ToolCallID, Text: out.Text}}
		out.Text = ""
	default:
		return wrong("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
	}
	c.req.Messages = append(c.req.Messages, out)
	return nil
}

// content parses text, a list of parts, or nothing if that is allowed.
func (c *openaiCheck) content(i int, m openaiMessage, out *Message) *refusal {
	raw := bytes.TrimSpace(m.Content)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		if m.Role == "assistant" && (len(m.ToolCalls) > 0 || m.Refusal != nil) {
			return nil
		}
		return wrong("Invalid value for 'content': expected a string, got null.")
	case raw[0] == '"':
		if err := json.Unmarshal(raw, &out.Text); err != nil {
			return wrong("Invalid 'messages[%d].content': %v", i, err)
		}
		return nil
	}
	var parts []openaiPart
	unknown, err := decodeStrict(raw, &parts)
	if err != nil || unknown != "" || len(parts) == 0 {
		return wrong("Invalid 'messages[%d].content': expected a string or a list of content parts (%v %s)", i, err, unknown)
	}
	for j, p := range parts {
		switch {
		case p.CacheControl != nil && c.req.API != OpenRouter:
			return wrong("Unknown parameter: 'messages[%d].content[%d].cache_control'.", i, j)
		case p.CacheControl != nil && (p.Type != "text" || strings.TrimSpace(p.Text) == "" || p.CacheControl.Type != "ephemeral"):
			return routed("messages[%d].content[%d]: cache_control can stand only on text that is not empty", i, j)
		case p.Type == "text":
			out.Text += p.Text
			out.Marked = out.Marked || p.CacheControl != nil
		case p.Type == "image_url" && m.Role == "user" && p.ImageURL != nil:
			head, data, ok := strings.Cut(p.ImageURL.URL, ";base64,")
			if ok && !strings.HasPrefix(head, "data:image/") {
				return wrong("Invalid MIME type. Only image types are supported.")
			}
			if _, err := base64.StdEncoding.DecodeString(data); ok && (err != nil || data == "") {
				return wrong("Invalid base64 image_url.")
			}
			out.Images++
		default:
			return wrong("Invalid value: '%s'. 'messages[%d].content[%d]' of role '%s' does not support it.", p.Type, i, j, m.Role)
		}
	}
	return nil
}

func (c *openaiCheck) unanswered() *refusal {
	if len(c.pending) == 0 {
		return nil
	}
	return wrong("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(c.pending, ", "))
}
