// Package feed turns journal events and live pieces into the objects that client
// programs see: the data of the HTTP event stream and the lines of
// `chorus run --json` are the same bytes.
//
// It promises:
//   - every object has type, sessionId and at; what comes from the journal has seq,
//     what is only shown (deltas, progress) has none;
//   - keys are in a fixed order, and the set of types is closed;
//   - exactly one terminal object a run: its RunEnded becomes either completed
//     (done, aborted, limit, denied) or error (failed, budget), and nothing else
//     becomes one of these two. A refused prompt starts no run and has no terminal;
//   - an event without a type of its own is a trace with its body, so that a
//     reader sees every sequence number.
//
// One event may become several objects, all with its sequence number, and all but the last
// have more set. A stream that can be resumed by number must name the number only on
// the last of them.
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

// Head has the fields that every object starts with.
type Head struct {
	Type      Type      `json:"type"`
	SessionID string    `json:"sessionId"`
	Seq       int64     `json:"seq,omitempty"`
	More      bool      `json:"more,omitempty"` // further objects with this number follow
	At        time.Time `json:"at"`
	Run       string    `json:"run,omitempty"`
}

// Header returns the head of any item.
func (h Head) Header() Head { return h }

func (Head) item() {}

// SessionStarted comes before the first event of a thread. Resumed says that it
// started with messages from elsewhere: a session file, or another thread (ForkedFrom).
type SessionStarted struct {
	Head
	Agent      string `json:"agent,omitempty"`
	Provider   string `json:"provider,omitempty"`
	Model      string `json:"model,omitempty"`
	Resumed    bool   `json:"resumed"`
	ForkedFrom string `json:"forkedFrom,omitempty"`
}

// RunStarted reports that a run started.
type RunStarted struct {
	Head
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model"`
	Mode          string `json:"mode,omitempty"`
	Permissions   string `json:"permissions,omitempty"`
	MaxIterations int    `json:"maxIterations,omitempty"`
}

// UserMessage is a message to the thread. Without Prompt it asks for no answer.
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

// AssistantMessage is the complete text of one answer of the model. It replaces the
// deltas of its run, step and attempt.
type AssistantMessage struct {
	Head
	Step       int    `json:"step"`
	Attempt    int    `json:"attempt"`
	Text       string `json:"text"`
	Thinking   string `json:"thinking,omitempty"`
	StopReason string `json:"stopReason"`
	Partial    bool   `json:"partial,omitempty"`
	ToolCalls  int    `json:"toolCalls,omitempty"`
	Usage      *Usage `json:"usage,omitempty"` // of this answer; if calls follow, the last of them has it
}

// Refused reports that the prompt with that number will not be answered.
type Refused struct {
	Head
	PromptSeq int64  `json:"promptSeq"`
	Reason    string `json:"reason"`
}

// Cleared reports that everything up to UpTo was removed from the context.
type Cleared struct {
	Head
	UpTo int64  `json:"upTo"`
	By   string `json:"by,omitempty"`
}

// TextDelta is a piece of an answer that is being generated.
type TextDelta struct {
	Head
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	Offset  int    `json:"offset"`
	Text    string `json:"text"`
}

// ThinkingDelta is a piece of the model's visible reasoning.
type ThinkingDelta TextDelta

// ToolCall reports that the model calls a tool. ArgsJSON is text: JSON, or what the model wrote
// instead.
type ToolCall struct {
	Head
	CallID   string `json:"callId"`
	Tool     string `json:"tool"`
	ArgsJSON string `json:"argsJson"`
	Label    string `json:"label,omitempty"`
	Step     int    `json:"step"`
	Usage    *Usage `json:"usage,omitempty"` // of the answer that makes the call; the last call of an answer has it
}

// ToolProgress is progress of a running call.
type ToolProgress struct {
	Head
	CallID  string `json:"callId"`
	Tool    string `json:"tool"`
	Message string `json:"message"`
}

// ToolResult is the result of a call.
type ToolResult struct {
	Head
	CallID  string   `json:"callId"`
	Tool    string   `json:"tool"`
	Result  Result   `json:"result"`
	Outcome string   `json:"outcome"`
	TookMS  int64    `json:"tookMs,omitempty"`
	Read    []string `json:"read,omitempty"`
	Changed []string `json:"changed,omitempty"`
	Diff    string   `json:"diff,omitempty"` // what it changed, as a unified diff
}

// Result is the outcome of a call: stdout if it is ok, stderr and a diagnostic if it
// is not; images are in data.
type Result struct {
	OK          bool         `json:"ok"`
	Stdout      string       `json:"stdout,omitempty"`
	Stderr      string       `json:"stderr,omitempty"`
	ExitCode    int          `json:"exitCode,omitempty"` // the command's exit code, if not 0
	Data        *Data        `json:"data,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}

// Data is the part of a result that is not text.
type Data struct {
	Images []Attachment `json:"images"`
}

// Diagnostic is why a result is not ok: a code and a sentence.
type Diagnostic struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ApprovalRequired reports that the call waits for approval.
type ApprovalRequired struct {
	Head
	CallID     string   `json:"callId"`
	Tool       string   `json:"tool"`
	ArgsJSON   string   `json:"argsJson,omitempty"`
	Reason     string   `json:"reason"`
	Label      string   `json:"label,omitempty"`
	ApprovalID string   `json:"approvalId"`
	Actions    []string `json:"actions,omitempty"`
	Rule       string   `json:"rule,omitempty"`
	Preview    string   `json:"preview,omitempty"`
	Unbound    string   `json:"unbound,omitempty"` // the part of the call that an approval cannot pin down
	Why        string   `json:"why,omitempty"`     // why a tool hook wants approval
	chat.Assessment
	Until  time.Time    `json:"until,omitzero"`
	Fields []chat.Field `json:"fields,omitempty"` // fields of a question; if empty, the answer is yes or no
}

// ApprovalResolved reports that a person answered or the deadline passed.
type ApprovalResolved struct {
	Head
	CallID     string `json:"callId"`
	ApprovalID string `json:"approvalId"`
	Approved   bool   `json:"approved"`
	By         string `json:"by"`
	Note       string `json:"note,omitempty"`
}

// Steered is a message to the current run.
type Steered struct {
	Head
	Text        string           `json:"text"`
	From        chat.Participant `json:"from"`
	Mode        chat.Intake      `json:"mode"`
	MessageID   string           `json:"messageId,omitempty"`
	Attachments []Attachment     `json:"attachments,omitempty"`
}

// Compacted reports that the summary replaces everything up to UpTo.
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

// Completed ends a run that finished or was stopped: stopReason is done, aborted, limit
// or denied.
type Completed struct {
	Head
	StopReason string `json:"stopReason"`
	Text       string `json:"text,omitempty"` // shown to people if the model gave no answer
	Iterations int    `json:"iterations"`
	Usage      Usage  `json:"usage"`
	Cost       USD    `json:"cost"`
}

// Error ends a run that failed: stopReason is failed or budget.
type Error struct {
	Head
	Message    string `json:"message"`
	Kind       string `json:"kind,omitempty"`
	StopReason string `json:"stopReason"`
	Iterations int    `json:"iterations"`
	Usage      Usage  `json:"usage"`
	Cost       USD    `json:"cost"`
}

// Trace is everything else; a client can follow a session without it. A failed request
// to the model that will be tried again has the kind "error".
type Trace struct {
	Head
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// USD is money, written as a decimal number of dollars without rounding.
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
