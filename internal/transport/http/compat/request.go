package compat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"chorus/internal/digest"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// SessionHeader names the session of a completion; a request with it continues that session.
const SessionHeader = "X-Chorus-Session"

// sessionKey does the same in the metadata of a request.
const sessionKey = "chorus_session"

// request holds the parameters that are used or refused. All others (temperature, top_p, seed,
// max_tokens, user and so on) are ignored: the agent's configuration decides.
type request struct {
	Model         string            `json:"model"`
	Messages      []message         `json:"messages"`
	Stream        bool              `json:"stream"`
	StreamOptions *streamOptions    `json:"stream_options"`
	Metadata      map[string]string `json:"metadata"`

	N          *int              `json:"n"`
	Tools      []json.RawMessage `json:"tools"`
	Functions  []json.RawMessage `json:"functions"`
	Stop       json.RawMessage   `json:"stop"`
	LogProbs   bool              `json:"logprobs"`
	Modalities []string          `json:"modalities"`
	Format     *struct {
		Type string `json:"type"`
	} `json:"response_format"`

	key    string // the Idempotency-Key
	digest string // of the body
}

// maxKey is longer than any generated key.
const maxKey = 200

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role      string            `json:"role"`
	Name      string            `json:"name"`
	Content   content           `json:"content"`
	ToolCalls []json.RawMessage `json:"tool_calls"`
}

// content is text, or a list of text and images.
type content struct {
	text   string
	images [][]byte
}

type part struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image struct {
		URL string `json:"url"`
	} `json:"image_url"`
	Refusal string `json:"refusal"`
}

// UnmarshalJSON reads both forms.
func (c *content) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, &c.text) // null is an empty text
	}
	var parts []part
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		switch p.Type {
		case "text", "refusal":
			c.text = strings.TrimLeft(c.text+"\n"+p.Text+p.Refusal, "\n")
		case "image_url":
			image, err := dataURL(p.Image.URL)
			if err != nil {
				return err
			}
			c.images = append(c.images, image)
		default:
			return operation.InvalidField("messages", "parts of type %.40q are not supported; use text or image_url", p.Type)
		}
	}
	return nil
}

// dataURL decodes an image in a data: URL. Other URLs are refused: fetching them would let
// clients send requests from inside our network.
func dataURL(text string) ([]byte, error) {
	head, data, ok := strings.Cut(text, ",")
	if !ok || !strings.HasPrefix(head, "data:") || !strings.HasSuffix(head, ";base64") {
		return nil, operation.InvalidField("messages", "an image must be sent as a data URL (data:image/png;base64,…); other URLs are not fetched")
	}
	image, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(image) == 0 {
		return nil, operation.InvalidField("messages", "an image is not valid base64")
	}
	return image, nil
}

// readRequest decodes and validates a request.
func readRequest(w http.ResponseWriter, r *http.Request) (request, error) {
	var a request
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(body)).Decode(&a)
	}
	var ours *operation.Error
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &ours):
		return a, ours
	case errors.As(err, &long):
		return a, operation.Errorf(operation.TooLarge, "the request is larger than %d MB", maxBody>>20)
	case err != nil:
		return a, operation.InvalidField("", "the request is not valid: %v", err)
	}
	if session := r.Header.Get(SessionHeader); session != "" {
		a.Metadata = map[string]string{sessionKey: session}
	}
	a.key = r.Header.Get("Idempotency-Key")
	if len(a.key) > maxKey || !utf8.ValidString(a.key) {
		return a, operation.InvalidField("Idempotency-Key", "the Idempotency-Key must be UTF-8 of at most %d bytes", maxKey)
	}
	a.digest = digest.Of(fmt.Appendf(body, "\x00%s", a.Metadata[sessionKey])) // the header's, too
	return a, a.validate()
}

func (a *request) validate() error {
	stop := string(bytes.TrimSpace(a.Stop))
	switch {
	case len(a.Messages) == 0:
		return operation.InvalidField("messages", "messages is empty")
	case a.Messages[len(a.Messages)-1].Role != "user":
		return operation.InvalidField("messages", "the last message must have the role user")
	case a.N != nil && *a.N != 1:
		return operation.InvalidField("n", "an agent gives one answer; leave n out")
	case len(a.Tools) > 0 || len(a.Functions) > 0:
		return operation.InvalidField("tools", "an agent has its own tools and runs them here; leave tools out")
	case stop != "" && stop != "null" && stop != "[]":
		return operation.InvalidField("stop", "stop sequences are set for the agent, not for a request; leave stop out")
	case a.LogProbs:
		return operation.InvalidField("logprobs", "logprobs are not supported; leave them out")
	case a.Format != nil && a.Format.Type != "text":
		return operation.InvalidField("response_format", "an agent answers with text; ask for JSON in words, and leave response_format out")
	}
	for _, m := range a.Modalities {
		if m != "text" {
			return operation.InvalidField("modalities", "an agent answers with text only")
		}
	}
	for i, m := range a.Messages {
		switch {
		case m.Role == "tool" || m.Role == "function" || len(m.ToolCalls) > 0:
			return operation.InvalidField("messages", "message %d is about a tool of the client; an agent has its own tools and runs them here", i)
		case m.Role != "user" && m.Role != "assistant" && m.Role != "system" && m.Role != "developer":
			return operation.InvalidField("messages", "message %d has the role %.40q; use system, developer, user or assistant", i, m.Role)
		}
	}
	return nil
}

// history returns all messages but the last. System messages come from the holder of the token, so they count as messages of that person.
func (a *request) history() []operations.Spoken {
	var out []operations.Spoken
	for _, m := range a.Messages[:len(a.Messages)-1] {
		line := operations.Spoken{Name: m.Name, Text: m.Content.text, Images: m.Content.images, Agent: m.Role == "assistant"}
		if m.Role == "system" || m.Role == "developer" {
			line.Text = fmt.Sprintf("Instructions for this conversation:\n%s", line.Text)
		}
		if strings.TrimSpace(line.Text) != "" || len(line.Images) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// prompt returns the last message.
func (a *request) prompt() content { return a.Messages[len(a.Messages)-1].Content }
