package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/openai/format"
	"chorus/internal/model/wire"
)

// The messages of Chat Completions. Their fields are in the order in which they are sent, which must not
// change because a prompt cache compares bytes. Content is a string or a list of parts.
type (
	plainMessage struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}
	toolMessage struct {
		Role       string `json:"role"`
		ToolCallID string `json:"tool_call_id"`
		Content    any    `json:"content"`
	}
	assistantMessage struct {
		Role             string          `json:"role"`
		Content          any             `json:"content,omitempty"`
		ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
		ToolCalls        []toolCall      `json:"tool_calls,omitempty"`
	}
	toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	textPart struct {
		Type         string        `json:"type"`
		Text         string        `json:"text"`
		CacheControl *cacheControl `json:"cache_control,omitempty"`
	}
	cacheControl struct {
		Type string `json:"type"`
	}
	imagePart struct {
		Type     string   `json:"type"`
		ImageURL imageURL `json:"image_url"`
	}
	imageURL struct {
		URL string `json:"url"`
	}
)

// form says how Chat Completions is written for a server and a model.
type form struct {
	router bool // reasoning goes back in OpenRouter's own field
	parts  bool // text as a list of parts, each of which can carry a cache mark
	blind  bool // the model sees no pictures
}

// name is the key under which messages cache their bytes.
func (f form) name() string {
	name := provider
	if f.router {
		name = routerName
	}
	if f.parts {
		name += "/parts"
	}
	if f.blind {
		name += "/blind"
	}
	return name
}

// head writes the tools, preceded by a comma, and the system message. A
// mark after the system prompt covers the tools too.
func (f form) head(h *model.Head) (tools, system []byte, err error) {
	if h == nil {
		return nil, nil, nil
	}
	if tools, err = h.Encoded("openai/tools", wire.FunctionTools); err != nil {
		return nil, nil, err
	}
	if f.parts {
		system, err = h.Encoded("openrouter/system/parts", encodeMarkedSystem)
	} else {
		system, err = h.Encoded("openai/system", encodeSystem)
	}
	return tools, system, err
}

func encodeSystem(h *model.Head) ([]byte, error) {
	if h.System == "" {
		return nil, nil
	}
	return wire.Append(nil, plainMessage{"system", h.System})
}

func encodeMarkedSystem(h *model.Head) ([]byte, error) {
	if h.System == "" {
		return nil, nil
	}
	return wire.Append(nil, plainMessage{"system", []textPart{{"text", h.System, &cacheControl{"ephemeral"}}}})
}

// encoder writes messages in the vendor's form.
type encoder struct {
	form
	blob func(string) ([]byte, error)
}

// isResult reports whether a message's bytes begin with a tool result.
func isResult(b []byte) bool { return bytes.HasPrefix(b, []byte(`{"role":"tool",`)) }

// written is a message in the vendor's form: what is sent at once, what waits for the last
// result of the batch, and where in the first a cache mark may be.
type written struct {
	now, late []byte
	markAt    int
}

// message writes one message as one or more of the vendor's: each result separately, then everything else. An
// empty message yields no bytes. MarkAt is not a cache mark here but the start of what has to wait.
func (e encoder) message(m *model.Message) (model.Wire, error) {
	w, err := e.write(m)
	if err != nil || len(w.late) == 0 {
		return model.Wire{Bytes: w.now}, err
	}
	return model.Wire{Bytes: append(w.now, w.late...), MarkAt: len(w.now)}, nil
}

// mark returns only where the message's cache mark may be.
func (e encoder) mark(m *model.Message) (model.Wire, error) {
	w, err := e.write(m)
	return model.Wire{MarkAt: w.markAt}, err
}

func (e encoder) write(m *model.Message) (written, error) {
	if m.Role == model.Assistant {
		return e.assistant(m.Blocks)
	}
	var w written
	var rest chat.Blocks
	for _, block := range m.Blocks {
		r, ok := block.(chat.ToolResult)
		if !ok {
			rest = append(rest, block)
			continue
		}
		images, err := e.result(&w, r)
		if err != nil {
			return written{}, err
		}
		if len(images) == 0 {
			continue
		}
		shown := "[shown by " + cmp.Or(r.Name, "a tool") + " in answer to call " + r.Call + "]"
		message, _, err := e.user(append(chat.Blocks{chat.Text{Text: shown}}, images...))
		if err != nil {
			return written{}, err
		}
		w.late = append(wire.Comma(w.late), message...)
	}
	said, markAt, err := e.user(rest)
	if err != nil {
		return written{}, err
	}
	if len(w.now) == 0 {
		return written{now: said, markAt: markAt}, nil
	}
	if len(said) > 0 { // text after results waits like their pictures
		w.late = append(wire.Comma(w.late), said...)
	}
	return w, nil
}

// result writes a tool's result, and returns its pictures.
func (e encoder) result(w *written, r chat.ToolResult) (chat.Blocks, error) {
	text, images := wire.ResultText(r.Blocks, e.shows)
	text = failedText(text, r.Failed)
	message := toolMessage{"tool", wire.ShortID(r.Call, maxChatID), text}
	parts := e.parts && strings.TrimSpace(text) != ""
	if parts {
		message.Content = []textPart{{Type: "text", Text: text}}
	}
	var err error
	if w.now, err = wire.AppendNext(w.now, message); parts {
		w.markAt = len(w.now) - len("}]}")
	}
	return images, err
}

// failedText says that a tool failed; there is no other way to.
func failedText(text string, failed bool) string {
	if failed && !strings.HasPrefix(strings.ToLower(text), "error") {
		return "Error: " + text
	}
	return text
}

// shows reports whether the model can be shown a picture.
func (f form) shows(img chat.Image) bool { return !f.blind && wire.Shown(img.MediaType) }

// user writes what a person said, as a string if possible, because some servers
// accept nothing else. It also returns where a cache mark may be.
func (e encoder) user(blocks chat.Blocks) ([]byte, int, error) {
	var text []string
	images := false
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			if b.Text != "" {
				text = append(text, b.Text)
			}
		case chat.File:
			text = append(text, wire.FileLine(b))
		case chat.Image:
			if images = images || e.shows(b); !e.shows(b) {
				text = append(text, wire.Unseen(b))
			}
		default:
			return nil, 0, fmt.Errorf("a user message cannot hold a %T", block)
		}
	}
	if !images && strings.TrimSpace(strings.Join(text, "")) == "" {
		return nil, 0, nil
	}
	if images || e.parts {
		return e.list(blocks)
	}
	out, err := wire.Append(nil, plainMessage{"user", strings.Join(text, "\n\n")})
	return out, 0, err
}

// list writes text and pictures as a list of parts.
func (e encoder) list(blocks chat.Blocks) ([]byte, int, error) {
	const start = `{"role":"user","content":[`
	var parts []byte
	markAt := 0
	for _, block := range blocks {
		part, err := e.part(block)
		if err != nil {
			return nil, 0, err
		}
		if part == nil {
			continue
		}
		if parts, err = wire.AppendNext(parts, part); err != nil {
			return nil, 0, err
		}
		if _, ok := part.(textPart); ok {
			markAt = len(start) + len(parts) - len("}")
		}
	}
	return slices.Concat([]byte(start), parts, []byte("]}")), markAt, nil
}

// part returns what is sent for a block, or nil for nothing.
func (e encoder) part(block chat.Block) (any, error) {
	text := ""
	switch b := block.(type) {
	case chat.Text:
		text = b.Text
	case chat.File:
		text = wire.FileLine(b)
	case chat.Image:
		if !e.shows(b) {
			text = wire.Unseen(b)
			break
		}
		url, lost, err := dataURL(b, e.blob)
		if err != nil || lost == "" {
			return imagePart{"image_url", imageURL{url}}, err
		}
		text = lost
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	return textPart{Type: "text", Text: text}, nil
}

// dataURL returns a picture as a data URL, or the line that replaces it if it is lost.
func dataURL(img chat.Image, blob func(string) ([]byte, error)) (url, lost string, err error) {
	data, lost, err := wire.EncodeImage(img, blob)
	return "data:" + img.MediaType + ";base64," + data, lost, err
}

// The longest call ids that the two interfaces accept.
const (
	maxChatID      = 40
	maxResponsesID = 64
)

// assistant writes an answer back: text and calls. Reasoning only goes back
// to a router; Chat Completions does not accept it.
func (e encoder) assistant(blocks chat.Blocks) (w written, err error) {
	message := assistantMessage{Role: "assistant"}
	switch text := blocks.Text(); {
	case strings.TrimSpace(text) == "":
	case e.parts:
		part, err := wire.Append(nil, textPart{Type: "text", Text: text})
		if err != nil {
			return w, err
		}
		message.Content = []json.RawMessage{part}
		w.markAt = len(`{"role":"assistant","content":[`) + len(part) - len("}")
	default:
		message.Content = text
	}
	for _, c := range blocks.Calls() {
		message.ToolCalls = append(message.ToolCalls, toolCall{wire.ShortID(c.ID, maxChatID), "function", function{wire.ToolName(c.Name), string(wire.Args(c.Args))}})
	}
	if message.Content == nil && message.ToolCalls == nil {
		return w, nil
	}
	if e.router {
		message.ReasoningDetails = format.Details(blocks)
	}
	w.now, err = wire.Append(nil, message)
	return w, err
}
