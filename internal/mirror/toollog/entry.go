// Package toollog writes Chapter3's tool files: the calls of an agent's tools with their
// results, one line per call, one file per hour, below <dir>/<agent>/<channel>.
//
// The files depend only on the journal. A call is written once, whatever crashed in between. It is
// removed when the answer it led to is deleted or the window has moved past it. A folder that was
// lost is written again from the first event. The package also reads the files that Chapter3 itself
// left, however damaged, and reports where the damage is.
package toollog

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/pattern"
	"chorus/internal/text"
)

// Entry is one line: a call and its result. Seq and Run are our additions
// and come last; lines of Chapter3 have neither.
type Entry struct {
	Call   Call      `json:"call"`
	Result Result    `json:"result"`
	At     time.Time `json:"timestamp"`
	Run    string    `json:"run,omitempty"`
	Seq    int64     `json:"seq,omitempty"` // of the result in the journal
}

// Call is what the agent asked of a tool.
type Call struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Input         json.RawMessage `json:"input"`
	MessageID     string          `json:"messageId"` // the message that the agent answered
	Text          string          `json:"originalCompletionText"`
	BotMessageIDs []string        `json:"botMessageIds,omitempty"` // the messages of the answer
}

// Result is the tool's result. With Error it failed.
type Result struct {
	Output json.RawMessage `json:"output"` // text, or any JSON in Chapter3's files
	Error  string          `json:"error,omitempty"`
	Images []Image         `json:"images,omitempty"`
}

// Image is a picture in a result. Our own lines name its blob; those of Chapter3 contain its bytes in base64.
type Image struct {
	Blob     string `json:"blob,omitempty"`
	Data     string `json:"data,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Name     string `json:"name,omitempty"`
}

// Answer returns the result as text: why it failed, or its output.
func (r Result) Answer() string {
	if r.Error != "" {
		return r.Error
	}
	return plain(r.Output)
}

// plain returns the text of a JSON string, or the JSON of anything else.
func plain(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var plainText string
	if json.Unmarshal(raw, &plainText) == nil {
		return plainText
	}
	var buf bytes.Buffer
	if json.Compact(&buf, raw) != nil {
		return string(raw)
	}
	return buf.String()
}

// hourName matches file names of either spelling: the program's T and the document's hyphen.
var hourName = pattern.Lazy(`^(\d{4}-\d{2}-\d{2})[T-](\d{2})\.jsonl$`)

func hourOf(at time.Time) string { return at.UTC().Format("2006-01-02T15") + ".jsonl" }

// Dir returns the folder of a thread's files below the tool folder: agent, then channel.
func Dir(thread chat.ThreadID) (agent, channel string) {
	agent = thread.Agent()
	channel = strings.TrimSuffix(string(thread), "@"+agent)
	if agent == "" {
		return "bot", string(thread)
	}
	return agent, channel
}

// encode returns one line of a file.
func encode(v any) ([]byte, error) {
	data, err := text.JSON(v)
	return append(data, '\n'), err
}
