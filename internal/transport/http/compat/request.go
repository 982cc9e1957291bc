package compat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"chorus/internal/command"
)

// SessionHeader names the session that a completion was, and the one to go on with.
const SessionHeader = "X-Chorus-Session"

// sessionKey is the same, in the metadata of a request.
const sessionKey = "chorus_session"

// ask is what of a request is looked at. Whatever else it says (temperature, top_p,
// seed, max_tokens, user and the like) is the agent's own business and is not used.
type ask struct {
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
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role      string            `json:"role"`
	Name      string            `json:"name"`
	Content   content           `json:"content"`
	ToolCalls []json.RawMessage `json:"tool_calls"`
}

// content is text, or parts of text and pictures.
type content struct {
	text     string
	pictures [][]byte
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
		return json.Unmarshal(data, &c.text) // null is nothing said
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
			picture, err := dataURL(p.Image.URL)
			if err != nil {
				return err
			}
			c.pictures = append(c.pictures, picture)
		default:
			return bad("messages", "a part of type %.40q is not taken; there are text and image_url", p.Type)
		}
	}
	return nil
}

// dataURL reads a picture that is in its own address. Others are not fetched: it would be
// done from inside the house, for whoever asks.
func dataURL(text string) ([]byte, error) {
	head, data, ok := strings.Cut(text, ",")
	if !ok || !strings.HasPrefix(head, "data:") || !strings.HasSuffix(head, ";base64") {
		return nil, bad("messages", "a picture must come in the request, as data:image/png;base64,…; addresses are not fetched")
	}
	picture, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(picture) == 0 {
		return nil, bad("messages", "the bytes of a picture are no base64")
	}
	return picture, nil
}

// read reads a request and refuses what could not be honoured.
func read(w http.ResponseWriter, r *http.Request) (ask, error) {
	var a ask
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&a)
	var ours *command.Error
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &ours):
		return a, ours
	case errors.As(err, &long):
		return a, command.Errorf(command.TooLarge, "the request is longer than %d MB", maxBody>>20)
	case err != nil:
		return a, bad("", "the request is no JSON that a completion is asked with: %v", err)
	}
	if session := r.Header.Get(SessionHeader); session != "" {
		a.Metadata = map[string]string{sessionKey: session}
	}
	return a, a.check()
}

func (a *ask) check() error {
	stop := string(bytes.TrimSpace(a.Stop))
	switch {
	case len(a.Messages) == 0:
		return bad("messages", "there are no messages; the last one is what is asked")
	case a.Messages[len(a.Messages)-1].Role != "user":
		return bad("messages", "the last message must be the user's: it is what is asked")
	case a.N != nil && *a.N != 1:
		return bad("n", "an agent gives one answer; leave n out")
	case len(a.Tools) > 0 || len(a.Functions) > 0:
		return bad("tools", "an agent has its own tools and runs them here; leave tools out")
	case stop != "" && stop != "null" && stop != "[]":
		return bad("stop", "stop sequences are set for the agent, not for a request; leave stop out")
	case a.LogProbs:
		return bad("logprobs", "there are no logprobs; leave them out")
	case a.Format != nil && a.Format.Type != "text":
		return bad("response_format", "an agent answers with text; ask for JSON in words, and leave response_format out")
	}
	for _, m := range a.Modalities {
		if m != "text" {
			return bad("modalities", "an agent answers with text only")
		}
	}
	for i, m := range a.Messages {
		switch {
		case m.Role == "tool" || m.Role == "function" || len(m.ToolCalls) > 0:
			return bad("messages", "message %d is about a tool of yours; an agent has its own tools and runs them here", i)
		case m.Role != "user" && m.Role != "assistant" && m.Role != "system" && m.Role != "developer":
			return bad("messages", "message %d has the role %.40q; there are system, developer, user and assistant", i, m.Role)
		}
	}
	return nil
}

// history is everything before what is asked. What a program calls system comes from
// whoever holds the token, so it is said as theirs.
func (a *ask) history() []command.Spoken {
	var out []command.Spoken
	for _, m := range a.Messages[:len(a.Messages)-1] {
		line := command.Spoken{Name: m.Name, Text: m.Content.text, Pictures: m.Content.pictures, Agent: m.Role == "assistant"}
		if m.Role == "system" || m.Role == "developer" {
			line.Text = fmt.Sprintf("Instructions for this conversation:\n%s", line.Text)
		}
		if strings.TrimSpace(line.Text) != "" || len(line.Pictures) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// prompt is what is asked.
func (a *ask) prompt() content { return a.Messages[len(a.Messages)-1].Content }
