package llmsim

import (
	"encoding/json"
	"net/http"
)

// API is which of the wire formats a request came in.
type API string

// The wire formats.
const (
	Anthropic API = "anthropic"
	OpenAI    API = "openai" // Chat Completions
	Google    API = "google"
	Ollama    API = "ollama"

	Responses   API = "responses"   // OpenAI's newer one
	Completions API = "completions" // OpenAI's oldest one, for base models
	OpenRouter  API = "openrouter"  // Chat Completions with its own fields
)

// State is how a request ended.
type State string

// The states of a request.
const (
	Open     State = "open"     // being answered
	Answered State = "answered" // to the end, or to the scripted fault
	Rejected State = "rejected" // with an HTTP error
	Gone     State = "gone"     // the client left before the end
)

// Request is a request as received, and its contents.
type Request struct {
	N         int         `json:"n"` // 1, 2, 3 …
	API       API         `json:"api"`
	State     State       `json:"state"`
	Header    http.Header `json:"-"`
	Body      []byte      `json:"-"`
	Model     string      `json:"model"`
	Stream    bool        `json:"stream"`
	MaxTokens int         `json:"maxTokens"`
	System    string      `json:"system,omitempty"`
	Tools     []string    `json:"tools,omitempty"`
	Stop      []string    `json:"stop,omitempty"`
	Messages  []Message   `json:"messages"`

	parts       []part // for the prefix cache
	includeUsed bool   // OpenAI: usage is requested in the stream
	sealed      bool   // Responses: encrypted reasoning is requested
	thoughts    bool   // Google, Ollama: reasoning is requested
}

// Message is one message of a request. A tool message of OpenAI's has one result.
type Message struct {
	Role     string   `json:"role"`
	Text     string   `json:"text,omitempty"` // its text parts, joined
	Thinking []string `json:"thinking,omitempty"`
	Calls    []Used   `json:"calls,omitempty"`
	Results  []Result `json:"results,omitempty"`
	Images   int      `json:"images,omitempty"` // those of results included
	Marked   bool     `json:"marked,omitempty"` // carries a cache mark
}

// Used is a call as the client sent it back.
type Used struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// Result is a tool's result.
type Result struct {
	Call   string `json:"call"`
	Text   string `json:"text"`
	Images int    `json:"images,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

// LastUser returns the user's newest text.
func (r Request) LastUser() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := r.Messages[i]; m.Role == "user" && m.Text != "" {
			return m.Text
		}
	}
	return ""
}

// LastToolResult returns the text of the newest tool result, if no text of the user or the model came after it.
func (r Request) LastToolResult() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		if n := len(m.Results); n > 0 {
			return m.Results[n-1].Text
		}
		if m.Text != "" {
			return ""
		}
	}
	return ""
}

// lastText is what an echo repeats.
func (r Request) lastText() string {
	if text := r.LastToolResult(); text != "" {
		return text
	}
	return r.LastUser()
}
