package session

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"chorus/internal/mirror/jsonl"
)

// entry is one line as read, with the fields of all kinds of lines. Keys are
// matched without regard to case, as encoding/json does.
type entry struct {
	at   time.Time
	kind string // data.type in lower case
	entryData
}

type entryData struct {
	Type        string            `json:"type"`
	Role        string            `json:"role"`
	Content     *string           `json:"content"`
	ToolCalls   []json.RawMessage `json:"toolCalls"`
	CallID      string            `json:"callId"`
	ToolName    string            `json:"toolName"`
	Result      json.RawMessage   `json:"result"`
	EventType   string            `json:"eventType"`
	Data        json.RawMessage   `json:"data"`
	Key         string            `json:"key"`
	Value       json.RawMessage   `json:"value"`
	UserID      string            `json:"userId"`
	UserName    string            `json:"userName"`
	Attachments []attachment      `json:"attachments"`
	SessionID   string            `json:"sessionId"`
	SessionPath string            `json:"sessionPath"`
	RepoRoot    string            `json:"repoRoot"`
	Provider    string            `json:"provider"`
	Model       string            `json:"model"`
	Mode        string            `json:"mode"`
	Resumed     bool              `json:"resumed"`
	Seq         int64             `json:"seq"`
	Left        int               `json:"left"`
	PromptSeq   int64             `json:"promptSeq"`
}

var (
	errLong   = errors.New("it is too long")
	errNoData = errors.New(`it has no "data" object with a "type"`)
)

// parseLine reads one line. errNoData means that it is JSON but not an entry.
func parseLine(l jsonl.Line) (entry, error) {
	if l.Long {
		return entry{}, errLong
	}
	var outer struct {
		Timestamp string          `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(l.Text, &outer); err != nil {
		return entry{}, err
	}
	var e entry
	if len(outer.Data) == 0 || outer.Data[0] != '{' {
		return entry{}, errNoData
	}
	if err := json.Unmarshal(outer.Data, &e.entryData); err != nil {
		return entry{}, err
	}
	if e.kind = strings.ToLower(e.Type); e.kind == "" {
		return entry{}, errNoData
	}
	e.at, _ = time.Parse(time.RFC3339Nano, outer.Timestamp) // an unreadable time counts as missing
	return e, nil
}

func (e entry) speech() speech {
	s := speech{UserID: e.UserID, UserName: e.UserName, Attachments: e.Attachments, PromptSeq: e.PromptSeq}
	if e.Content != nil {
		s.Content = *e.Content
	}
	return s
}

// parseCall reads one element of toolCalls. The arguments may be text or, from other programs, an object.
func parseCall(raw json.RawMessage) (toolCall, bool) {
	var c struct {
		CallID   string          `json:"callId"`
		Name     string          `json:"name"`
		ArgsJSON json.RawMessage `json:"argsJson"`
	}
	if json.Unmarshal(raw, &c) != nil || c.CallID == "" || c.Name == "" {
		return toolCall{}, false
	}
	return toolCall{c.CallID, c.Name, plain(c.ArgsJSON)}, true
}

// plain decodes a JSON string. Any other value is returned as its JSON text; null gives "".
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
