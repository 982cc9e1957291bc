package llmsim

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"chorus/internal/model"
)

func (s *Server) ollamaRoutes() {
	s.mux.HandleFunc("POST /api/chat", s.ollamaChat)
	s.mux.HandleFunc("GET /api/tags", s.ollamaTags)
}

// ollamaBody is a request to /api/chat. Unknown fields are ignored, as in Ollama.
type ollamaBody struct {
	Model    string            `json:"model"`
	Messages []json.RawMessage `json:"messages"`
	Stream   *bool             `json:"stream"`
	Tools    []json.RawMessage `json:"tools"`
	Think    any               `json:"think"`
	Options  map[string]any    `json:"options"`
}

type ollamaMessage struct {
	Role       string       `json:"role"`
	Content    string       `json:"content"`
	Thinking   string       `json:"thinking"`
	Images     []string     `json:"images"`
	ToolCalls  []ollamaCall `json:"tool_calls"`
	ToolName   string       `json:"tool_name"`
	ToolCallID string       `json:"tool_call_id"`
}

type ollamaCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// ollamaModels are pulled by default.
var ollamaModels = []string{"gemma3:12b", "gpt-oss:20b", "llama3.2:3b", "mistral-small:24b", "qwen3:8b"}

// bad is Ollama's answer to an invalid request: a sentence.
func bad(format string, args ...any) *refusal {
	return &refusal{code: 400, message: fmt.Sprintf(format, args...)}
}

// ollamaKey needs no key, but a given one must be right, as at the hosted service.
func (s *Server) ollamaKey(r *http.Request) *refusal {
	key, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if given && !s.known(key) {
		return &refusal{code: 401, message: "unauthorized"}
	}
	return nil
}

// ollamaChat answers POST /api/chat.
func (s *Server) ollamaChat(w http.ResponseWriter, r *http.Request) {
	req, e := s.ollamaRequest(w, r)
	req = s.record(req)
	if e != nil {
		s.reject(w, Ollama, req, e)
		return
	}
	if len(req.Messages) == 0 { // only loads the model
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(encode(ollamaFrame(req, obj{"role": "assistant", "content": ""}, obj{"done": true, "done_reason": "load"})))
		s.settle(req.N, Answered)
		return
	}
	turn := s.turnFor(req)
	if s.failed(w, Ollama, req, turn) {
		return
	}
	usage := s.usage(req, turn)
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(encode(ollamaWhole(req, turn, usage)))
		s.settle(req.N, Answered)
		return
	}
	s.stream(w, r, req.N, Ollama, turn, ollamaFrames(req, turn, usage))
}

func (s *Server) ollamaRequest(w http.ResponseWriter, r *http.Request) (Request, *refusal) {
	req := Request{API: Ollama, Header: r.Header, Stream: true}
	data, e := read(w, r)
	if e != nil {
		return req, e
	}
	if !s.opts.Lenient {
		req.Body = data
	}
	if e := s.ollamaKey(r); e != nil {
		return req, e
	}
	var body ollamaBody
	switch err := json.Unmarshal(data, &body); {
	case len(bytes.TrimSpace(data)) == 0:
		return req, bad("missing request body")
	case err != nil:
		return req, bad("%v", err)
	case body.Model == "":
		return req, bad("model is required")
	}
	req.Model = body.Model
	if body.Stream != nil {
		req.Stream = *body.Stream
	}
	if !s.pulled(body.Model) {
		return req, &refusal{code: 404, message: "model '" + body.Model + "' not found"}
	}
	check := &ollamaCheck{req: &req, body: &body}
	for _, step := range []func() *refusal{check.think, check.options, check.tools, check.messages} {
		if e := step(); e != nil && !s.opts.Lenient {
			return req, e
		}
	}
	if n := model.Tokens(len(data)); s.opts.Window > 0 && n > s.opts.Window {
		return req, bad("the input length exceeds the context length: %d > %d", n, s.opts.Window)
	}
	return req, nil
}

// pulled reports whether a model exists; a name without a tag means latest.
func (s *Server) pulled(name string) bool {
	return s.offered(name) || s.offered(name+":latest") || s.offered(strings.TrimSuffix(name, ":latest"))
}

// ollamaTags answers GET /api/tags.
func (s *Server) ollamaTags(w http.ResponseWriter, r *http.Request) {
	if e := s.ollamaKey(r); e != nil {
		s.refuse(w, Ollama, e)
		return
	}
	names := s.opts.Models
	if len(names) == 0 {
		names = ollamaModels
	}
	list := []obj{}
	for _, name := range names {
		list = append(list, obj{"name": name, "model": name, "size": 1 << 30, "modified_at": time.Unix(created, 0).UTC().Format(time.RFC3339)})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(encode(obj{"models": list}))
}

// ollamaCheck validates a request as Ollama does.
type ollamaCheck struct {
	req  *Request
	body *ollamaBody
}

func (c *ollamaCheck) think() *refusal {
	switch v := c.body.Think.(type) {
	case nil:
		c.req.thoughts = true
	case bool:
		c.req.thoughts = v
	case string:
		if !slices.Contains([]string{"high", "medium", "low"}, v) {
			return bad(`invalid think value: %q (must be "high", "medium", "low", true, or false)`, v)
		}
		c.req.thoughts = true
	default:
		return bad("think must be a boolean or string (\"high\", \"medium\", \"low\", true, or false)")
	}
	return nil
}

func (c *ollamaCheck) options() *refusal {
	for _, name := range []string{"num_predict", "num_ctx", "top_k", "seed"} {
		if v, given := c.body.Options[name]; given {
			if n, ok := v.(float64); !ok || n != math.Trunc(n) {
				return bad("option %q must be of type integer", name)
			}
		}
	}
	for _, name := range []string{"temperature", "top_p"} {
		if _, ok := c.body.Options[name].(float64); c.body.Options[name] != nil && !ok {
			return bad("option %q must be of type float32", name)
		}
	}
	if n, ok := c.body.Options["num_predict"].(float64); ok {
		c.req.MaxTokens = int(n)
	}
	stops, given := c.body.Options["stop"]
	list, ok := stops.([]any)
	if given && !ok {
		return bad("option %q must be of type array", "stop")
	}
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return bad("option %q must be of an array of strings", "stop")
		}
		c.req.Stop = append(c.req.Stop, s)
	}
	return nil
}

func (c *ollamaCheck) tools() *refusal {
	for _, raw := range c.body.Tools {
		var t struct {
			Type     string `json:"type"`
			Function struct {
				Name       string `json:"name"`
				Parameters struct {
					Type       string                     `json:"type"`
					Properties map[string]json.RawMessage `json:"properties"`
				} `json:"parameters"`
			} `json:"function"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return bad("%v", err)
		}
		c.req.Tools = append(c.req.Tools, t.Function.Name)
		c.req.parts = append(c.req.parts, part{bytes: raw})
	}
	return nil
}

func (c *ollamaCheck) messages() *refusal {
	for _, raw := range c.body.Messages {
		var m ollamaMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			return bad("%v", err)
		}
		c.req.parts = append(c.req.parts, part{bytes: raw})
		out := Message{Role: m.Role, Text: m.Content, Images: len(m.Images)}
		for _, image := range m.Images {
			if data, err := base64.StdEncoding.DecodeString(image); err != nil || len(data) == 0 {
				return bad("illegal base64 data at input byte 0")
			}
		}
		if m.Thinking != "" {
			out.Thinking = []string{m.Thinking}
		}
		for _, call := range m.ToolCalls {
			args := bytes.TrimSpace(call.Function.Arguments)
			if len(args) > 0 && args[0] != '{' {
				return bad("json: cannot unmarshal %s into Go struct field ToolCallFunction.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments", args)
			}
			out.Calls = append(out.Calls, Used{ID: call.ID, Name: call.Function.Name, Args: args})
		}
		switch m.Role {
		case "system":
			c.req.System += m.Content
		case "user", "assistant":
		case "tool":
			out.Results = []Result{{Call: m.ToolCallID, Text: m.Content, Images: len(m.Images)}}
			out.Text = ""
		default:
			return bad("invalid role: %s, role must be one of [system, user, assistant, tool]", m.Role)
		}
		c.req.Messages = append(c.req.Messages, out)
	}
	return nil
}
