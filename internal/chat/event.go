package chat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Event is one durable fact of a thread. A draft has neither Seq nor At; the store assigns both.
type Event struct {
	Thread ThreadID
	Seq    int64     // 1, 2, 3 …, no gaps within a thread
	At     time.Time // UTC, microseconds
	Run    string    // the run it belongs to, if any
	Who    string    // participant or principal that caused it, for people and queries
	Body   Body

	// Set when the event mirrors something on a platform. The three are unique per
	// thread and kind. Guests without a platform use "local" and a ULID, so that they
	// can read back an event whose outcome they do not know.
	Platform   string
	PlatformID string
	Version    int
}

// Body is what happened. It is always one of the types below.
type Body interface{ Kind() Kind }

// Kind names a body type, in the store and in exports.
type Kind string

// The closed set of event kinds.
const (
	KindReceived         Kind = "received"
	KindRefused          Kind = "refused"
	KindEdited           Kind = "edited"
	KindDeleted          Kind = "deleted"
	KindReacted          Kind = "reacted"
	KindImported         Kind = "imported"
	KindRunStarted       Kind = "run_started"
	KindTook             Kind = "took"
	KindAsked            Kind = "asked"
	KindSaid             Kind = "said"
	KindToolBegan        Kind = "tool_began"
	KindToolRan          Kind = "tool_ran"
	KindDeferred         Kind = "deferred"
	KindSettled          Kind = "settled"
	KindApprovalAsked    Kind = "approval_asked"
	KindApprovalAnswered Kind = "approval_answered"
	KindApprovalNoted    Kind = "approval_noted"
	KindSteered          Kind = "steered"
	KindAbortAsked       Kind = "abort_asked"
	KindNoted            Kind = "noted"
	KindRolled           Kind = "rolled"
	KindCompacted        Kind = "compacted"
	KindCleared          Kind = "cleared"
	KindRunEnded         Kind = "run_ended"
	KindForked           Kind = "forked"
)

// Kinds returns all kinds, for lists to choose from.
func Kinds() []string {
	return []string{"received", "refused", "edited", "deleted", "reacted", "imported", "run_started", "took", "asked", "said", "tool_began", "tool_ran", "deferred", "settled",
		"approval_asked", "approval_answered", "approval_noted", "steered", "abort_asked", "noted", "rolled", "compacted", "cleared", "run_ended", "forked"}
}

// Intake says what happens to words that arrive during a run.
type Intake string

// The intake modes.
const (
	Queue     Intake = "queue"     // waits for its own run
	Inject    Intake = "inject"    // given to the model after the current tool batch
	Interrupt Intake = "interrupt" // like Inject, but the rest of the batch is skipped
)

// Received records that somebody said something. With Prompt it asks
// for an answer; without, it only becomes context.
type Received struct {
	From      Participant `json:"from"`
	Principal Principal   `json:"principal"`
	Blocks    Blocks      `json:"blocks"`
	ReplyTo   string      `json:"replyTo,omitempty"`
	Intake    Intake      `json:"intake,omitempty"`
	Prompt    bool        `json:"prompt,omitempty"`
	Terms     Terms       `json:"terms,omitzero"`
	Channel   string      `json:"channel,omitempty"` // the platform's channel in which it was said
	Post      string      `json:"post,omitempty"`    // the channel that the answer goes to, if it is a different one
	// Together says that a run that begins with this prompt also takes what the same person asked next.
	// In a room, several messages to the agent are then answered as one.
	Together bool `json:"together,omitempty"`
	// Silent marks a command. The model does not see it and continues from what was said last.
	Silent    bool `json:"silent,omitempty"`
	Forgotten bool `json:"forgotten,omitempty"` // its words were deleted from the journal too
}

// Refused records that the prompt Seq will not be answered. People see this.
type Refused struct {
	Seq int64  `json:"seq"`
	Why string `json:"why"`
}

// Edited records that the author changed the words of Seq. With Files, it records that
// the files of Seq have been fetched and replace their placeholders.
type Edited struct {
	Seq     int64  `json:"seq"`
	Blocks  Blocks `json:"blocks"`
	Files   bool   `json:"files,omitempty"`
	Message string `json:"message,omitempty"` // as in Deleted
	// Forgotten is as in Received.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Over returns the message after the edit. New words keep the message's
// files and its reply mark; fetched files keep its words.
func (e Edited) Over(old Blocks) Blocks {
	words, files := old.Apart()
	if e.Files {
		return slices.Concat(words, e.Blocks)
	}
	return slices.Concat(withReplyMark(replyMark(words), e.Blocks), files)
}

// replyMark returns the "<reply:@name> " that a room puts before words that answer somebody.
func replyMark(words Blocks) string {
	if len(words) == 0 {
		return ""
	}
	first, _ := words[0].(Text)
	if end := strings.Index(first.Text, "> "); end > 0 && strings.HasPrefix(first.Text, "<reply:") {
		return first.Text[:end+2]
	}
	return ""
}

func withReplyMark(mark string, blocks Blocks) Blocks {
	if mark == "" || len(blocks) == 0 || replyMark(blocks) != "" {
		return blocks
	}
	first, ok := blocks[0].(Text)
	if !ok {
		return blocks
	}
	first.Text = mark + first.Text
	return append(Blocks{first}, blocks[1:]...)
}

// Deleted records that the words of Seq were deleted.
type Deleted struct {
	Seq int64 `json:"seq"`
	// Message is the platform's id of an imported message; Seq is then 0.
	Message string `json:"message,omitempty"`
	// Forget removes the words from the journal too. The fact that something was deleted remains.
	Forget bool `json:"forget,omitempty"`
}

// Reacted records that somebody added an emoji to Seq or removed it.
type Reacted struct {
	Seq   int64       `json:"seq"`
	By    Participant `json:"by"`
	Emoji string      `json:"emoji"`
	Added bool        `json:"added"`
}

// Imported records that Count messages from elsewhere (a session file, a parent thread, a
// platform's history) joined the thread. Blob holds them as JSON of []Line. With Instead they
// replace everything before them; during a run, this happens when the run has ended.
type Imported struct {
	Source  string `json:"source"`
	Blob    string `json:"blob"`
	Count   int    `json:"count"`
	Instead bool   `json:"instead,omitempty"`
	// Forgotten says that some of them were deleted, here too.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Line is one imported message.
type Line struct {
	Role   string      `json:"role"` // "user", "assistant" or "tool"
	From   Participant `json:"from"`
	At     time.Time   `json:"at,omitzero"`
	Blocks Blocks      `json:"blocks"`
	ID     string      `json:"id,omitempty"` // the platform's id; if several messages were merged, all their ids, separated by spaces
}

// RunStarted records that a run began with these settings. Head is the blob with the
// system prompt and the tools exactly as the model gets them.
type RunStarted struct {
	Run       string    `json:"run"`
	Model     string    `json:"model"` // provider/model
	Settings  Settings  `json:"settings"`
	Head      string    `json:"head"`
	Renderer  string    `json:"renderer"`
	Principal Principal `json:"principal"`
	Terms     Terms     `json:"terms,omitzero"`
}

// Took records that the run took these waiting prompts. Each taking is an
// event, including those in the middle of a run.
type Took struct {
	Run  string  `json:"run"`
	Step int     `json:"step"`
	Seqs []int64 `json:"seqs"`
}

// Purpose says what a model call is for.
type Purpose string

// The purposes of a model call.
const (
	ForTurn       Purpose = "turn"
	ForCompaction Purpose = "compaction" // the summary, requested on top of the live prefix
	ForExcerpt    Purpose = "excerpt"    // the summary, requested from a shortened copy
)

// Asked records that a request is about to be sent. Sees is the last event that it
// renders. Digest is the fingerprint of its canonical fragments.
type Asked struct {
	Step    int     `json:"step"`
	Attempt int     `json:"attempt"`
	Model   string  `json:"model"`
	Purpose Purpose `json:"purpose"`
	Sees    int64   `json:"sees"`
	Digest  string  `json:"digest"`
	Tokens  int     `json:"tokens,omitempty"` // estimate of the input
	Cached  int     `json:"cached,omitempty"` // how much of it the provider's cache should have
	// Dropped lists the settings that the request could not carry, each with the reason.
	Dropped []string `json:"dropped,omitempty"`
}

// Usage counts tokens. Input is what was neither read from a cache nor written to one.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cacheRead,omitempty"`
	CacheWrite int `json:"cacheWrite,omitempty"`
}

// Total is the sum of all tokens in and out.
func (u Usage) Total() int { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Plus returns the sum of two usages.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Stop says why the model stopped.
type Stop string

// The reasons to stop.
const (
	StopEnd     Stop = "end"
	StopTools   Stop = "tools"
	StopLength  Stop = "length"
	StopSeq     Stop = "stop_sequence"
	StopRefused Stop = "refused"
	StopAborted Stop = "aborted"
	StopError   Stop = "error"
)

// Said records that the attempt ended. With Error it failed, and Blocks holds what arrived
// before that. With Partial an abort cut it off, and its text is kept.
type Said struct {
	Step    int      `json:"step"`
	Attempt int      `json:"attempt"`
	Blocks  Blocks   `json:"blocks"`
	Usage   Usage    `json:"usage"`
	Stop    Stop     `json:"stop"`
	Partial bool     `json:"partial,omitempty"`
	Error   *Failure `json:"error,omitempty"`
	// Forgotten is as in Received.
	Forgotten bool `json:"forgotten,omitempty"`
	// Unreadable lists stream events that could not be read; the answer continued without them.
	Unreadable []string `json:"unreadable,omitempty"`
	// Received is how many bytes of an answer arrived before it was cut off, with thinking and arguments.
	Received int `json:"received,omitempty"`
	// Cost is the total cost in billionths of a dollar, as reported by the
	// program that answered. It is used where no price is known.
	Cost int64 `json:"cost,omitempty"`
}

// Failure is an error as stored in the journal.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	RetryMS int64  `json:"retryMs,omitempty"` // how long to wait before the next attempt
	// Until is when attempts stop, if the provider is down for longer than the usual number of attempts takes.
	Until time.Time `json:"until,omitzero"`
	Final bool      `json:"final,omitempty"` // there will be no further attempt
	Next  string    `json:"next,omitempty"`  // the model used from here on
}

// ToolBegan records that a call with side effects is about to run. Such a call never runs twice.
type ToolBegan struct {
	Call string `json:"call"`
	Name string `json:"name"`
}

// Deferred records that another thread is answering the call. That thread begins in the same
// commit. ToolRan follows once it has answered; until then the run may rest.
type Deferred struct {
	Call   string   `json:"call"`
	Name   string   `json:"name"`
	Thread ThreadID `json:"thread"`
}

// Settled records that the thread to which a call was deferred has answered it.
type Settled struct {
	Call   string `json:"call"`
	Blocks Blocks `json:"blocks"`
	Failed bool   `json:"failed,omitempty"`
}

// Outcome says how a call got its result.
type Outcome string

// The outcomes of a call.
const (
	Ran         Outcome = "ran"
	Denied      Outcome = "denied"
	Skipped     Outcome = "skipped"
	Interrupted Outcome = "interrupted"
	Invalid     Outcome = "invalid" // unknown tool or wrong arguments; nothing ran
)

// ToolRan records the result of a call.
type ToolRan struct {
	Call          string   `json:"call"`
	Name          string   `json:"name"`
	Blocks        Blocks   `json:"blocks"`
	Failed        bool     `json:"failed,omitempty"` // the model is told that this is an error
	Exit          int      `json:"exit,omitempty"`   // the command's exit code if not 0; for the model still a normal result
	Outcome       Outcome  `json:"outcome"`
	TookMS        int64    `json:"tookMs,omitempty"`
	Read          []string `json:"read,omitempty"`    // files it read
	Changed       []string `json:"changed,omitempty"` // files it wrote, moved or deleted
	Diff          string   `json:"diff,omitempty"`    // what it changed in them, as a unified diff for people; the model does not see it
	UntrustedFrom string   `json:"foreign,omitempty"` // the source of its text when others wrote it: "file a.go"
}

// Succeeded reports whether the call ran and neither the tool nor its command failed.
func (t ToolRan) Succeeded() bool {
	return !t.Failed && t.Exit == 0 && (t.Outcome == Ran || t.Outcome == "")
}

// ApprovalAsked records that the call waits for approval. The approval's row has all the details.
type ApprovalAsked struct {
	ID      string    `json:"id"`
	Call    string    `json:"call"`
	Name    string    `json:"name"`
	Actions []string  `json:"actions"`
	Rule    string    `json:"rule,omitempty"`
	Preview string    `json:"preview,omitempty"`
	Until   time.Time `json:"until,omitzero"`
	Who     string    `json:"who,omitempty"`     // who may answer
	Unbound string    `json:"unbound,omitempty"` // the part of the call that an approval cannot pin down
	Assessment
	// Args are the arguments that a tool hook substituted for the model's; nil if
	// none did. Why is what such a hook says about the approval.
	Args json.RawMessage `json:"args,omitempty"`
	Why  string          `json:"why,omitempty"`
	// During says that the call is already running and waits for this answer. The answer is not the
	// call's result, and if the process dies, nothing waits for it any more.
	During bool `json:"during,omitempty"`
	// Fields are the values that a question asks for. Without fields, the answer is yes or no.
	Fields []Field `json:"fields,omitempty"`
}

// Field is one value that a question asks for, described for people.
type Field struct {
	Name     string   `json:"name"` // the name that the asker uses
	Label    string   `json:"label"`
	Kind     string   `json:"kind,omitempty"` // integer, number, boolean or list; "" for text
	Hint     string   `json:"hint,omitempty"`
	Choices  []Choice `json:"choices,omitempty"` // if empty, any value is allowed
	Several  bool     `json:"several,omitempty"` // more than one may be chosen
	Optional bool     `json:"optional,omitempty"`
	Values   []string `json:"values,omitempty"` // the current values
	Bounds
}

// Bounds are the limits of a value besides its kind. Zero means no limit.
type Bounds struct {
	Format    string   `json:"format,omitempty"`    // of text: email, uri, date or date-time
	Pattern   string   `json:"pattern,omitempty"`   // of text: a regular expression it must match
	MinLength int      `json:"minLength,omitempty"` // of text, in characters
	MaxLength int      `json:"maxLength,omitempty"`
	Min       *float64 `json:"min,omitempty"` // of numbers
	Max       *float64 `json:"max,omitempty"`
	MinItems  int      `json:"minItems,omitempty"` // of lists
	MaxItems  int      `json:"maxItems,omitempty"`
}

// Choice is one of the values allowed for a Field.
type Choice struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// Assessment is what people are told about a call that waits for approval: how much harm it could
// do and why, and what the rules say about each of its parts. All transports show the same.
type Assessment struct {
	Risk    string       `json:"risk,omitempty"`    // low, medium or high
	RiskWhy string       `json:"riskWhy,omitempty"` // a sentence
	Parts   []JudgedPart `json:"parts,omitempty"`
}

// Line returns the risk and its reason, or "" if nothing is known.
func (a Assessment) Line() string {
	if a.RiskWhy == "" {
		return a.Risk
	}
	return a.Risk + ": " + a.RiskWhy
}

// JudgedPart is one thing that a call would do.
type JudgedPart struct {
	Text    string `json:"text"`
	Verdict string `json:"verdict"` // allow, ask or deny
	Why     string `json:"why,omitempty"`
	Depth   int    `json:"depth,omitempty"` // nesting depth; a part follows the part that starts it
}

// ApprovalAnswered records that somebody answered or the deadline passed.
type ApprovalAnswered struct {
	ID   string `json:"id"`
	Call string `json:"call"`
	By   string `json:"by"`
	OK   bool   `json:"ok"`
	Note string `json:"note,omitempty"`
}

// ApprovalNoted records something that leaves an approval open: one of two
// people approved, or nobody has answered for a while.
type ApprovalNoted struct {
	ID   string         `json:"id"`
	Call string         `json:"call"`
	What ApprovalNotice `json:"what"`
	By   string         `json:"by,omitempty"`
	Note string         `json:"note,omitempty"`
}

// ApprovalNotice is what happened to an open approval.
type ApprovalNotice string

// What can happen to an open approval.
const (
	FirstYes ApprovalNotice = "first yes" // a second person must approve too
	Reminder ApprovalNotice = "reminder"
)

// Steered adds words to the current run. Without a current run they are a prompt.
type Steered struct {
	From      Participant `json:"from"`
	Principal Principal   `json:"principal"`
	Blocks    Blocks      `json:"blocks"`
	Mode      Intake      `json:"mode"`
	Terms     Terms       `json:"terms,omitzero"`
	// Forgotten is as in Received.
	Forgotten bool `json:"forgotten,omitempty"`
}

// AbortAsked asks to end the run or, with All, the run and everything that
// waits. It has no effect once that run has ended. Without Run it applies to
// whatever is running or waiting when it is read.
type AbortAsked struct {
	Run string `json:"run"`
	By  string `json:"by"`
	All bool   `json:"all,omitempty"`
}

// Noted records a change that the model should know about (the date, memory, a
// mode). It is appended where it happened and never inserted.
type Noted struct {
	What string `json:"what"`
	Text string `json:"text"`
	// Whole is the full current state when Text only describes the difference from the previous note.
	Whole string `json:"whole,omitempty"`
}

// Knows returns the state that the model knows after seeing the note.
func (n Noted) Knows() string {
	return cmp.Or(n.Whole, n.Text)
}

// Rolled records that the window now begins at place KeepFrom. If Images is
// set, only that many of the newest pictures are shown.
type Rolled struct {
	KeepFrom int64  `json:"keepFrom"`
	Images   *int   `json:"images,omitempty"`
	Because  string `json:"because"`
}

// Compacted records that the summary replaces everything up to place UpTo.
type Compacted struct {
	Step     int      `json:"step"`
	Attempt  int      `json:"attempt"`
	UpTo     int64    `json:"upTo"`
	Summary  string   `json:"summary"`
	Read     []string `json:"read,omitempty"`
	Modified []string `json:"modified,omitempty"`
	Usage    Usage    `json:"usage"`
	How      string   `json:"how"` // "model", "excerpt" or "mechanical"
	Tokens   int      `json:"tokens,omitempty"`
}

// Cleared records that everything up to place UpTo left the window.
type Cleared struct {
	UpTo int64  `json:"upTo"`
	By   string `json:"by,omitempty"`
}

// Reason says why a run ended.
type Reason string

// The reasons for a run's end.
const (
	EndDone    Reason = "done"
	EndAborted Reason = "aborted"
	EndFailed  Reason = "failed"
	EndLimit   Reason = "limit"
	EndBudget  Reason = "budget"
	EndDenied  Reason = "denied"
)

// RunEnded records the end of a run. Cost is in billionths of a dollar.
type RunEnded struct {
	Run    string   `json:"run"`
	Reason Reason   `json:"reason"`
	Error  *Failure `json:"error,omitempty"`
	Text   string   `json:"text,omitempty"` // what people are told when the model gave no answer
	Steps  int      `json:"steps"`
	Usage  Usage    `json:"usage"`
	Cost   int64    `json:"cost"`
}

// Forked records that this thread began as a copy of another one.
type Forked struct {
	From  ThreadID `json:"from"`
	AtSeq int64    `json:"atSeq"`
}

// The Kind methods tie each body to its name.

func (Received) Kind() Kind         { return KindReceived }
func (Refused) Kind() Kind          { return KindRefused }
func (Edited) Kind() Kind           { return KindEdited }
func (Deleted) Kind() Kind          { return KindDeleted }
func (Reacted) Kind() Kind          { return KindReacted }
func (Imported) Kind() Kind         { return KindImported }
func (RunStarted) Kind() Kind       { return KindRunStarted }
func (Took) Kind() Kind             { return KindTook }
func (Asked) Kind() Kind            { return KindAsked }
func (Said) Kind() Kind             { return KindSaid }
func (ToolBegan) Kind() Kind        { return KindToolBegan }
func (ToolRan) Kind() Kind          { return KindToolRan }
func (Deferred) Kind() Kind         { return KindDeferred }
func (Settled) Kind() Kind          { return KindSettled }
func (ApprovalAsked) Kind() Kind    { return KindApprovalAsked }
func (ApprovalAnswered) Kind() Kind { return KindApprovalAnswered }
func (ApprovalNoted) Kind() Kind    { return KindApprovalNoted }
func (Steered) Kind() Kind          { return KindSteered }
func (AbortAsked) Kind() Kind       { return KindAbortAsked }
func (Noted) Kind() Kind            { return KindNoted }
func (Rolled) Kind() Kind           { return KindRolled }
func (Compacted) Kind() Kind        { return KindCompacted }
func (Cleared) Kind() Kind          { return KindCleared }
func (RunEnded) Kind() Kind         { return KindRunEnded }
func (Forked) Kind() Kind           { return KindForked }
