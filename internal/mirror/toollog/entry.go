// Package toollog keeps Chapter3's tool files: what an agent's tools were asked and
// answered, one line a call, one file an hour, below <dir>/<agent>/<channel>.
//
// It promises that the files follow from the journal, which alone is the truth: a
// call is written once whatever crashed in between, is gone when the answer it led to
// is deleted or the window has moved past it, and a folder that was lost is begun again
// from the first event. And it promises to read the files that Chapter3 itself
// left, however damaged, and to say where they are.
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

// Entry is one line: a call and its result. Seq and Run are ours and come last;
// lines of Chapter3 have neither.
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
	MessageID     string          `json:"messageId"` // the message that the agent was answering
	Text          string          `json:"originalCompletionText"`
	BotMessageIDs []string        `json:"botMessageIds,omitempty"` // what the answer became
}

// Result is what the tool answered. With Error it failed.
type Result struct {
	Output json.RawMessage `json:"output"` // text, or any JSON in files of Chapter3
	Error  string          `json:"error,omitempty"`
	Images []Image         `json:"images,omitempty"`
}

// Image is a picture in a result: our own lines name its blob, those of Chapter3
// hold its bytes in base64.
type Image struct {
	Blob     string `json:"blob,omitempty"`
	Data     string `json:"data,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Name     string `json:"name,omitempty"`
}

// Answer is the result as text: why it failed, or what it gave.
func (r Result) Answer() string {
	if r.Error != "" {
		return r.Error
	}
	return plain(r.Output)
}

// plain is the text of a JSON string, or the JSON of anything else.
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

// hourName is a file of either spelling: the program's T and the document's hyphen.
var hourName = pattern.Lazy(`^(\d{4}-\d{2}-\d{2})[T-](\d{2})\.jsonl$`)

func hourOf(at time.Time) string { return at.UTC().Format("2006-01-02T15") + ".jsonl" }

// Dir names the folder of a thread's files below the tool folder: agent, then channel.
func Dir(thread chat.ThreadID) (agent, channel string) {
	agent = thread.Agent()
	channel = strings.TrimSuffix(string(thread), "@"+agent)
	if agent == "" {
		return "bot", string(thread)
	}
	return agent, channel
}

// encode is one line of a file.
func encode(v any) ([]byte, error) {
	data, err := text.JSON(v)
	return append(data, '\n'), err
}
