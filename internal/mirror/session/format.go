package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/text"
)

// envelope is one line of a log.
type envelope struct {
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// mark ends the data of a line that mirrors an event: the event's number, and how many of its lines follow.
type mark struct {
	Seq  int64 `json:"seq,omitempty"`
	Left int   `json:"left,omitempty"`
}

func (m *mark) setMark(seq int64, left int) { m.Seq, m.Left = seq, left }

type marked interface{ setMark(seq int64, left int) }

// Start is the data of a session_start line.
type Start struct {
	SessionID   string `json:"sessionId"`
	SessionPath string `json:"sessionPath,omitempty"`
	RepoRoot    string `json:"repoRoot,omitempty"`
	Provider    string `json:"provider,omitempty"`
	Model       string `json:"model,omitempty"`
	Mode        string `json:"mode,omitempty"` // once or repl
	Resumed     bool   `json:"resumed"`
}

type startLine struct {
	Type string `json:"type"`
	Start
}

// speech is what somebody said. It appears in the user_prompt line when it
// arrived and in the message line when the model was given it.
type speech struct {
	Content     string       `json:"content"`
	UserID      string       `json:"userId,omitempty"`
	UserName    string       `json:"userName,omitempty"`
	Attachments []attachment `json:"attachments,omitempty"`
	PromptSeq   int64        `json:"promptSeq,omitempty"` // the prompt that is edited or taken
}

type attachment struct {
	Name      string `json:"name"`
	MediaType string `json:"mediaType,omitempty"`
	Path      string `json:"path,omitempty"`
	Blob      string `json:"blob,omitempty"`
}

type promptLine struct {
	Type string `json:"type"`
	speech
	mark
}

type userLine struct {
	Type string `json:"type"`
	Role string `json:"role"`
	speech
	mark
}

type assistantLine struct {
	Type      string     `json:"type"`
	Role      string     `json:"role"`
	Content   string     `json:"content,omitempty"`
	ToolCalls []toolCall `json:"toolCalls,omitempty"`
	Partial   bool       `json:"partial,omitempty"`
	mark
}

type toolCall struct {
	CallID   string `json:"callId"`
	Name     string `json:"name"`
	ArgsJSON string `json:"argsJson"`
}

type toolLine struct {
	Type     string `json:"type"`
	Role     string `json:"role"`
	CallID   string `json:"callId"`
	ToolName string `json:"toolName"`
	Result   result `json:"result"`
	mark
}

type resultLine struct {
	Type        string       `json:"type"`
	CallID      string       `json:"callId"`
	Tool        string       `json:"tool"`
	OK          bool         `json:"ok"`
	Diagnostics []diagnostic `json:"diagnostics,omitempty"`
	mark
}

type eventLine struct {
	Type      string `json:"type"`
	EventType string `json:"eventType"`
	Data      any    `json:"data"`
	mark
}

type noteLine struct {
	Type  string  `json:"type"`
	Key   string  `json:"key,omitempty"`
	Value *string `json:"value,omitempty"` // missing if the note was removed
	mark
}

// result is a tool's result in the log.
type result struct {
	OK          bool            `json:"ok"`
	Stdout      string          `json:"stdout,omitempty"`
	Stderr      string          `json:"stderr,omitempty"`
	ExitCode    int             `json:"exitCode,omitempty"` // the command's exit code, if not 0
	Data        json.RawMessage `json:"data,omitempty"`
	Diagnostics []diagnostic    `json:"diagnostics,omitempty"`
}

type diagnostic struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// text returns everything in a result that a model can use. The original program sent only the
// first field it found, so a command's output was lost if there was data.
func (r result) text() string {
	var parts []string
	if len(r.Data) > 0 && !bytes.Equal(r.Data, []byte("null")) {
		parts = append(parts, string(r.Data))
	}
	for _, s := range []string{r.Stdout, r.Stderr} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	for _, d := range r.Diagnostics {
		if d.Message != "" && !strings.Contains(strings.Join(parts, "\n"), d.Message) {
			parts = append(parts, d.Message)
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, "\n")
	case r.OK:
		return "OK"
	default:
		return "Error"
	}
}

func resultOf(b chat.ToolRan) result {
	output := b.Blocks.Text()
	if b.Failed || (b.Outcome != chat.Ran && b.Outcome != "") {
		code := string(b.Outcome)
		if code == "" || b.Outcome == chat.Ran {
			code = "failed"
		}
		return result{Stderr: output, Diagnostics: []diagnostic{{Code: code, Message: output}}}
	}
	return result{OK: b.Exit == 0, Stdout: output, ExitCode: b.Exit}
}

// encode writes one line with its newline.
func encode(to *bytes.Buffer, at time.Time, data any) error {
	if err := text.WriteJSON(to, envelope{at.UTC(), data}); err != nil {
		return fmt.Errorf("encode a line of the session log: %w", err)
	}
	return nil
}
