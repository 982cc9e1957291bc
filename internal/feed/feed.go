// Package feed turns journal events and live pieces into the objects that
// people's programs see: the data of the HTTP event stream and the lines of
// `chorus run --json` are the same bytes.
//
// It promises:
//   - every object has type, sessionId and at; what comes from the journal has seq,
//     what is only shown (deltas, progress) has none;
//   - keys stand in a fixed order, and the set of types is closed;
//   - exactly one terminal object a run: its RunEnded becomes either completed
//     (done, aborted, limit, denied) or error (failed, budget), and nothing else
//     becomes one of these two. A refused prompt starts no run and has no terminal;
//   - an event without a type of its own is a trace that carries its body, so a
//     reader sees each number.
//
// One event may become several objects, all with its number, and all but the last say
// that there is more. A stream that can be resumed by number must name the number only
// on the last of them.
package feed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/ledger"
	"chorus/internal/text"
)

// Type names an object, in its "type" and on the event line of a stream.
type Type string

// The closed set of types.
const (
	TypeSessionStarted   Type = "session_started"
	TypeRunStarted       Type = "run_started"
	TypeUserMessage      Type = "user_message"
	TypeAssistantMessage Type = "assistant_message"
	TypeRefused          Type = "refused"
	TypeCleared          Type = "cleared"
	TypeTextDelta        Type = "text_delta"
	TypeThinkingDelta    Type = "thinking_delta"
	TypeToolCall         Type = "tool_call"
	TypeToolProgress     Type = "tool_progress"
	TypeToolResult       Type = "tool_result"
	TypeApprovalRequired Type = "approval_required"
	TypeApprovalResolved Type = "approval_resolved"
	TypeSteered          Type = "steered"
	TypeCompacted        Type = "compacted"
	TypeCompleted        Type = "completed"
	TypeError            Type = "error"
	TypeTrace            Type = "trace"
)

// Terminal reports whether an object of this type ends a run.
func (t Type) Terminal() bool { return t == TypeCompleted || t == TypeError }

// Item is one object: one of the types below and no other.
type Item interface {
	Header() Head
	item()
}

// Head is what every object begins with.
type Head struct {
	Type      Type      `json:"type"`
	SessionID string    `json:"sessionId"`
	Seq       int64     `json:"seq,omitempty"`
	More      bool      `json:"more,omitempty"` // further objects with this number follow
	At        time.Time `json:"at"`
	Run       string    `json:"run,omitempty"`
}

// Header gives the head of any item.
func (h Head) Header() Head { return h }

func (Head) item() {}

// SessionStarted stands before the first event of a thread. Resumed says that it
// began with words from elsewhere: a session file, or another thread (ForkedFrom).
type SessionStarted struct {
	Head
	Agent      string `json:"agent,omitempty"`
	Provider   string `json:"provider,omitempty"`
	Model      string `json:"model,omitempty"`
	Resumed    bool   `json:"resumed"`
	ForkedFrom string `json:"forkedFrom,omitempty"`
}

// RunStarted: a run began.
type RunStarted struct {
	Head
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model"`
	Mode          string `json:"mode,omitempty"`
	Permissions   string `json:"permissions,omitempty"`
	MaxIterations int    `json:"maxIterations,omitempty"`
}

// UserMessage: somebody said something. Without Prompt it was only heard.
type UserMessage struct {
	Head
	Text        string           `json:"text"`
	From        chat.Participant `json:"from"`
	Prompt      bool             `json:"prompt"`
	MessageID   string           `json:"messageId,omitempty"`
	ReplyTo     string           `json:"replyTo,omitempty"`
	Intake      chat.Intake      `json:"intake,omitempty"`
	Attachments []Attachment     `json:"attachments,omitempty"`
}

// Attachment is a picture or a file that came with a message or a result.
type Attachment struct {
	Name      string `json:"name,omitempty"`
	MediaType string `json:"mediaType,omitempty"`
	Blob      string `json:"blob,omitempty"`
	Path      string `json:"path,omitempty"`
	Size      int64  `json:"size,omitempty"`
}

// AssistantMessage is the text of one whole answer of the model's. It replaces
// the deltas of its run, step and attempt.
type AssistantMessage struct {
	Head
	Step       int    `json:"step"`
	Attempt    int    `json:"attempt"`
	Text       string `json:"text"`
	Thinking   string `json:"thinking,omitempty"`
	StopReason string `json:"stopReason"`
	Partial    bool   `json:"partial,omitempty"`
	ToolCalls  int    `json:"toolCalls,omitempty"`
}

// Refused: the prompt with that number will not be answered.
type Refused struct {
	Head
	PromptSeq int64  `json:"promptSeq"`
	Reason    string `json:"reason"`
}

// Cleared: everything up to UpTo is out of the window.
type Cleared struct {
	Head
	UpTo int64  `json:"upTo"`
	By   string `json:"by,omitempty"`
}

// TextDelta and ThinkingDelta are pieces of an answer in the making.
type TextDelta struct {
	Head
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	Offset  int    `json:"offset"`
	Text    string `json:"text"`
}

// ThinkingDelta is a piece of the reasoning that the model shows.
type ThinkingDelta TextDelta

// ToolCall: the model wants a call made. ArgsJSON is text: JSON, or whatever the
// model wrote instead.
type ToolCall struct {
	Head
	CallID   string `json:"callId"`
	Tool     string `json:"tool"`
	ArgsJSON string `json:"argsJson"`
	Label    string `json:"label,omitempty"`
	Step     int    `json:"step"`
}

// ToolProgress is a sign of life from a running call.
type ToolProgress struct {
	Head
	CallID  string `json:"callId"`
	Tool    string `json:"tool"`
	Message string `json:"message"`
}

// ToolResult: the call has its result.
type ToolResult struct {
	Head
	CallID  string   `json:"callId"`
	Tool    string   `json:"tool"`
	Result  Result   `json:"result"`
	Outcome string   `json:"outcome"`
	TookMS  int64    `json:"tookMs,omitempty"`
	Read    []string `json:"read,omitempty"`
	Changed []string `json:"changed,omitempty"`
}

// Result is what a call brought: stdout when it is ok, stderr and a diagnostic
// when it is not; pictures are in data.
type Result struct {
	OK          bool         `json:"ok"`
	Stdout      string       `json:"stdout,omitempty"`
	Stderr      string       `json:"stderr,omitempty"`
	Data        *Data        `json:"data,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}

// Data is what of a result is not text.
type Data struct {
	Images []Attachment `json:"images"`
}

// Diagnostic says in a word and a sentence why a result is not ok.
type Diagnostic struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ApprovalRequired: the call waits for somebody's yes.
type ApprovalRequired struct {
	Head
	CallID     string    `json:"callId"`
	Tool       string    `json:"tool"`
	ArgsJSON   string    `json:"argsJson,omitempty"`
	Reason     string    `json:"reason"`
	Label      string    `json:"label,omitempty"`
	ApprovalID string    `json:"approvalId"`
	Actions    []string  `json:"actions,omitempty"`
	Rule       string    `json:"rule,omitempty"`
	Preview    string    `json:"preview,omitempty"`
	Until      time.Time `json:"until,omitzero"`
}

// ApprovalResolved: somebody, or the deadline, answered.
type ApprovalResolved struct {
	Head
	CallID     string `json:"callId"`
	ApprovalID string `json:"approvalId"`
	Approved   bool   `json:"approved"`
	By         string `json:"by"`
	Note       string `json:"note,omitempty"`
}

// Steered: words for the run that is on.
type Steered struct {
	Head
	Text        string           `json:"text"`
	From        chat.Participant `json:"from"`
	Mode        chat.Intake      `json:"mode"`
	MessageID   string           `json:"messageId,omitempty"`
	Attachments []Attachment     `json:"attachments,omitempty"`
}

// Compacted: everything up to UpTo is replaced by the summary.
type Compacted struct {
	Head
	UpTo     int64    `json:"upTo"`
	Summary  string   `json:"summary"`
	How      string   `json:"how"`
	Read     []string `json:"read,omitempty"`
	Modified []string `json:"modified,omitempty"`
	Tokens   int      `json:"tokens,omitempty"`
	Usage    Usage    `json:"usage"`
}

// Usage counts tokens under the names of the stream's first clients.
type Usage struct {
	InputTokens      int `json:"inputTokens"`
	OutputTokens     int `json:"outputTokens"`
	CacheReadTokens  int `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int `json:"cacheWriteTokens,omitempty"`
}

// Completed ends a run that came to an end of its own or somebody's choosing:
// stopReason is done, aborted, limit or denied.
type Completed struct {
	Head
	StopReason string `json:"stopReason"`
	Text       string `json:"text,omitempty"` // what people are told when the model gave no answer
	Iterations int    `json:"iterations"`
	Usage      Usage  `json:"usage"`
	Cost       USD    `json:"cost"`
}

// Error ends a run that could not go on: stopReason is failed or budget.
type Error struct {
	Head
	Message    string `json:"message"`
	Kind       string `json:"kind,omitempty"`
	StopReason string `json:"stopReason"`
	Iterations int    `json:"iterations"`
	Usage      Usage  `json:"usage"`
	Cost       USD    `json:"cost"`
}

// Trace is everything else: for the curious, never needed to follow a session.
// A failed attempt of the model that will be tried again has the kind "error".
type Trace struct {
	Head
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// USD is money, written as a plain decimal number of dollars without rounding.
type USD ledger.Nanos

const nanosPerDollar = 1_000_000_000

// MarshalJSON writes 1234500000 as 1.2345.
func (u USD) MarshalJSON() ([]byte, error) {
	sign, n := "", uint64(u)
	if u < 0 {
		sign, n = "-", -n
	}
	text := fmt.Appendf(nil, "%s%d.%09d", sign, n/nanosPerDollar, n%nanosPerDollar)
	return bytes.TrimSuffix(bytes.TrimRight(text, "0"), []byte(".")), nil
}

// UnmarshalJSON reads a number of dollars.
func (u *USD) UnmarshalJSON(data []byte) error {
	var dollars float64
	if err := json.Unmarshal(data, &dollars); err != nil {
		return fmt.Errorf("read a cost: %w", err)
	}
	half := 0.5
	if dollars < 0 {
		half = -half
	}
	*u = USD(dollars*nanosPerDollar + half)
	return nil
}

var errNoItem = errors.New("there is no object to encode")

// Encode writes the object as one line of JSON without the newline. Unlike
// json.Marshal it leaves <, > and & alone, so code stays readable.
func Encode(item Item) ([]byte, error) {
	if item == nil {
		return nil, errNoItem
	}
	data, err := text.JSON(item)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", item.Header().Type, err)
	}
	return data, nil
}
