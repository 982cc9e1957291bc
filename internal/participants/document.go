package participants

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/digest"
	"chorus/internal/model"
	"chorus/internal/suggest"
	"chorus/internal/window"
)

// Document is a participant-based request in a file: the normalised
// form of Chapter3's document, and the bot's name.
type Document struct {
	Messages      []DocumentMessage `json:"messages"`
	SystemPrompt  string            `json:"systemPrompt"`
	Tools         []DocumentTool    `json:"tools"`
	StopSequences []string          `json:"stopSequences"`
	Config        DocumentConfig    `json:"config"`
	BotName       string            `json:"botName"` // "": the participant of the last, empty message
}

// DocumentMessage is what one participant said.
type DocumentMessage struct {
	Participant  string          `json:"participant"`
	Content      DocumentContent `json:"content"`
	Timestamp    string          `json:"timestamp"`
	MessageID    string          `json:"messageId"`
	CacheControl *struct {
		Type string `json:"type"`
	} `json:"cacheControl"`
}

// DocumentContent is a list of blocks; a string is a text.
type DocumentContent []DocumentBlock

// DocumentBlock is a text, an image, a tool_use or a tool_result.
type DocumentBlock struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Source *struct {
		Type      string `json:"type"`
		Data      string `json:"data"`
		MediaType string `json:"mediaType"`
	} `json:"source"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"toolUseId"`
	Content   DocumentContent `json:"content"`
	IsError   bool            `json:"isError"`
}

// DocumentTool is a tool's definition.
type DocumentTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// DocumentConfig is the model and its settings.
type DocumentConfig struct {
	Model       string   `json:"model"`
	Temperature *float64 `json:"temperature"`
	MaxTokens   int      `json:"maxTokens"`
	TopP        *float64 `json:"topP"`
	Mode        Mode     `json:"mode"`
}

// UnmarshalJSON reads a list of blocks or a string.
func (c *DocumentContent) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*c = DocumentContent{{Type: "text", Text: text}}
		return nil
	}
	return strictly(data, (*[]DocumentBlock)(c))
}

// ParseDocument reads a request. Unknown fields are errors that name the nearest known one.
func ParseDocument(data []byte) (*Document, error) {
	d := new(Document)
	if err := strictly(data, d); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return d, nil
}

// strictly decodes one JSON value and rejects anything after it.
func strictly(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return errors.New("there is extra text after the JSON value")
		}
		return nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := data[:min(int(syntax.Offset), len(data))]
		return fmt.Errorf("line %d: %w", bytes.Count(before, []byte("\n"))+1, err)
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return unknownField(strings.Trim(quoted, `"`), into)
	}
	return err
}

// unknownField suggests the field that was probably meant.
func unknownField(name string, into any) error {
	names := fieldNames(reflect.TypeOf(into), nil)
	if best := suggest.Best(name, names); best != "" {
		return fmt.Errorf("unknown field %q; did you mean %q?", name, best)
	}
	return fmt.Errorf("unknown field %q; the known ones are %s", name, strings.Join(names, ", "))
}

// fieldNames returns the names of a struct's fields and of nested fields.
func fieldNames(t reflect.Type, names []string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		if t == reflect.TypeFor[DocumentContent]() || t == reflect.TypeFor[json.RawMessage]() {
			return names
		}
		return fieldNames(t.Elem(), names)
	case reflect.Struct:
		for f := range t.Fields() {
			names = fieldNames(f.Type, append(names, f.Tag.Get("json")))
		}
	}
	return names
}

// Bot returns the name of the bot that is asked.
func (d *Document) Bot() (string, error) {
	if d.BotName != "" {
		return d.BotName, nil
	}
	if n := len(d.Messages); n > 0 && d.Messages[n-1].empty() {
		return d.Messages[n-1].Participant, nil
	}
	return "", errors.New(`whose answer is wanted? Add "botName", or end the messages with an empty one of the bot's`)
}

func (m DocumentMessage) empty() bool {
	for _, b := range m.Content {
		if b.Type != "text" || strings.TrimSpace(b.Text) != "" {
			return false
		}
	}
	return true
}

// Since leaves out messages older than age, counted from the newest one, as a
// bot's window does when a run begins. Messages without a time count as new. It
// returns the reason, or "" if nothing was left out.
func (d *Document) Since(age time.Duration) (string, error) {
	times := make([]time.Time, len(d.Messages))
	var newest time.Time
	for i, m := range d.Messages {
		if m.Timestamp == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, m.Timestamp)
		if err != nil {
			return "", fmt.Errorf("message %d of %s: %w", i+1, m.Participant, err)
		}
		if times[i] = at; at.After(newest) {
			newest = at
		}
	}
	bot, _ := d.Bot()
	items := make([]window.Item, len(d.Messages))
	for i, m := range d.Messages {
		result := len(m.Content) > 0 && m.Content[0].Type == "tool_result"
		items[i] = window.Item{Own: m.Participant == bot && !result, Result: result}
		if !times[i].IsZero() {
			items[i].Age = newest.Sub(times[i])
		}
	}
	plan := window.Build(items, 0, window.Limits{Age: age})
	d.Messages = d.Messages[plan.From:]
	return plan.Because, nil
}

// Request returns the request that the core would make for the document.
func (d *Document) Request() (model.Request, error) {
	bot, err := d.Bot()
	if err != nil {
		return model.Request{}, err
	}
	head := &model.Head{System: d.SystemPrompt}
	for _, t := range d.Tools {
		head.Tools = append(head.Tools, model.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.InputSchema})
	}
	slices.SortFunc(head.Tools, func(a, b model.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	blobs := map[string][]byte{}
	r := model.Request{Model: d.Config.Model, Head: head, Settings: chat.Settings{
		MaxTokens: d.Config.MaxTokens, Temperature: d.Config.Temperature, TopP: d.Config.TopP, Stop: d.StopSequences,
	}, Blob: func(hash string) ([]byte, error) {
		if data, ok := blobs[hash]; ok {
			return data, nil
		}
		return nil, fmt.Errorf("there is no image %s", hash)
	}}
	tools := map[string]string{}
	for i, m := range d.Messages {
		if m.empty() {
			if m.CacheControl != nil && len(r.Messages) > 0 {
				r.Marks = append(r.Marks, len(r.Messages)-1)
			}
			continue
		}
		role, from := model.User, chat.Participant{Name: m.Participant}
		blocks, err := m.blocks(tools, blobs)
		if err != nil {
			return r, fmt.Errorf("message %d of %s: %w", i+1, m.Participant, err)
		}
		switch {
		case m.Participant == "":
			return r, fmt.Errorf("message %d has no participant", i+1)
		case m.Content[0].Type == "tool_result":
			from = chat.Participant{Kind: chat.System}
		case m.Participant == bot:
			role = model.Assistant
		}
		msg, err := model.NewMessage(role, from, blocks)
		if err != nil {
			return r, err
		}
		if r.Messages = append(r.Messages, msg); m.CacheControl != nil {
			r.Marks = append(r.Marks, len(r.Messages)-1)
		}
	}
	return r, nil
}

// blocks returns a message's content. It records the names of calls in tools and images in blobs.
func (m DocumentMessage) blocks(tools map[string]string, blobs map[string][]byte) (chat.Blocks, error) {
	var out chat.Blocks
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			out = append(out, chat.Text{Text: b.Text})
		case "image":
			img, err := b.image(blobs)
			if err != nil {
				return nil, err
			}
			out = append(out, img)
		case "tool_use":
			tools[b.ID] = b.Name
			out = append(out, chat.ToolUse{ID: b.ID, Name: b.Name, Args: b.Input})
		case "tool_result":
			inner, err := DocumentMessage{Content: b.Content}.blocks(tools, blobs)
			if err != nil {
				return nil, err
			}
			if b.ToolUseID == "" {
				return nil, errors.New("a tool_result without toolUseId")
			}
			out = append(out, chat.ToolResult{Call: b.ToolUseID, Name: tools[b.ToolUseID], Blocks: inner, Failed: b.IsError})
		default:
			return nil, fmt.Errorf("unknown type %q of a content block; use text, image, tool_use or tool_result", b.Type)
		}
	}
	return out, nil
}

func (b DocumentBlock) image(blobs map[string][]byte) (chat.Image, error) {
	if b.Source == nil || b.Source.Type != "base64" {
		return chat.Image{}, errors.New(`an image needs a source of the type base64 (nothing is fetched here)`)
	}
	data, err := base64.StdEncoding.DecodeString(b.Source.Data)
	if err != nil {
		return chat.Image{}, fmt.Errorf("an image's data is not base64: %w", err)
	}
	img := chat.Image{Blob: digest.Of(data), MediaType: b.Source.MediaType, Size: int64(len(data))}
	blobs[img.Blob] = data
	return img, nil
}
