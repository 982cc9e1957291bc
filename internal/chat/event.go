package chat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Event is one durable fact of a thread. A draft has neither Seq nor At; the
// store gives it both.
type Event struct {
	Thread ThreadID
	Seq    int64     // 1, 2, 3 … without gaps within a thread
	At     time.Time // UTC, microseconds
	Run    string    // the run it belongs to, if any
	Who    string    // participant or principal who caused it, for people and queries
	Body   Body

	// Where the event mirrors something on a platform. Unique per thread, kind
	// and version; guests without a platform bring "local" and a ULID so that an
	// unknown outcome can be read back.
	Platform   string
	PlatformID string
	Version    int
}

// Body is what happened: one of the types below and no other.
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

// Kinds are all of them, for lists from which somebody chooses.
func Kinds() []string {
	return []string{"received", "refused", "edited", "deleted", "reacted", "imported", "run_started", "took", "asked", "said", "tool_began", "tool_ran", "deferred", "settled",
		"approval_asked", "approval_answered", "approval_noted", "steered", "abort_asked", "noted", "rolled", "compacted", "cleared", "run_ended", "forked"}
}

// Intake says what happens to words that arrive while a run is on.
type Intake string

// The intake modes.
const (
	Queue     Intake = "queue"     // waits for its own run
	Inject    Intake = "inject"    // given to the model after the current tool batch
	Interrupt Intake = "interrupt" // the rest of the batch is skipped first
)

// Received: somebody said something. With Prompt it waits for an answer;
// without, it was only heard and becomes context.
type Received struct {
	From      Participant `json:"from"`
	Principal Principal   `json:"principal"`
	Blocks    Blocks      `json:"blocks"`
	ReplyTo   string      `json:"replyTo,omitempty"`
	Intake    Intake      `json:"intake,omitempty"`
	Prompt    bool        `json:"prompt,omitempty"`
	Terms     Terms       `json:"terms,omitzero"`
	Channel   string      `json:"channel,omitempty"` // the platform's channel in which it was said
	Post      string      `json:"post,omitempty"`    // the channel that the answer goes to, where that is another
	// Together: a run that begins with it takes also what the same person asked next. In a
	// room several wishes to hear the agent are one.
	Together bool `json:"together,omitempty"`
	// Silent: the words are a command and not for the model, which goes on from what was said last.
	Silent    bool `json:"silent,omitempty"`
	Forgotten bool `json:"forgotten,omitempty"` // its words were deleted, also here
}

// Refused: the prompt Seq will not be answered, visibly.
type Refused struct {
	Seq int64  `json:"seq"`
	Why string `json:"why"`
}

// Edited: the words of Seq were changed by their author, or, with Files, the files that
// came with them have been fetched and stand where they were announced.
type Edited struct {
	Seq     int64  `json:"seq"`
	Blocks  Blocks `json:"blocks"`
	Files   bool   `json:"files,omitempty"`
	Message string `json:"message,omitempty"` // as in Deleted
	// Forgotten is as in Received.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Over is what a message is after the change: new words keep its files and the mark of whom
// it answers, files that have come keep its words.
func (e Edited) Over(old Blocks) Blocks {
	words, files := old.Apart()
	if e.Files {
		return slices.Concat(words, e.Blocks)
	}
	return slices.Concat(withReplyMark(replyMark(words), e.Blocks), files)
}

// replyMark is the "<reply:@name> " that a room puts before words that answer somebody.
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

// Deleted: the words of Seq were taken back.
type Deleted struct {
	Seq int64 `json:"seq"`
	// Message is the platform's id of a message that came with an import; Seq is 0 then.
	Message string `json:"message,omitempty"`
	// Forget: the words go from the journal too; that something was deleted stays.
	Forget bool `json:"forget,omitempty"`
}

// Reacted: somebody put an emoji on Seq, or took it off.
type Reacted struct {
	Seq   int64       `json:"seq"`
	By    Participant `json:"by"`
	Emoji string      `json:"emoji"`
	Added bool        `json:"added"`
}

// Imported: Count messages from elsewhere (a session file, a parent thread, a
// platform's history) joined the thread. Blob holds them as JSON of []Line. With Instead
// they take the place of everything before them; while a run is on, once it has ended.
type Imported struct {
	Source  string `json:"source"`
	Blob    string `json:"blob"`
	Count   int    `json:"count"`
	Instead bool   `json:"instead,omitempty"`
	// Forgotten: some of them were deleted, also here.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Line is one imported message.
type Line struct {
	Role   string      `json:"role"` // "user", "assistant" or "tool"
	From   Participant `json:"from"`
	At     time.Time   `json:"at,omitzero"`
	Blocks Blocks      `json:"blocks"`
	ID     string      `json:"id,omitempty"` // the platform's; of several messages that became one, all of theirs with spaces between
}

// RunStarted: a run began under these settings. Head is the blob with the
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

// Took: the run took these waiting prompts. Every taking is one, also in mid-run.
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
	ForCompaction Purpose = "compaction" // the summary, asked for on top of the live prefix
	ForExcerpt    Purpose = "excerpt"    // the summary, asked for from a cut-down copy
)

// Asked: a request is about to be sent. Sees is the last event that it renders,
// Digest the fingerprint of its canonical fragments.
type Asked struct {
	Step    int     `json:"step"`
	Attempt int     `json:"attempt"`
	Model   string  `json:"model"`
	Purpose Purpose `json:"purpose"`
	Sees    int64   `json:"sees"`
	Digest  string  `json:"digest"`
	Tokens  int     `json:"tokens,omitempty"` // estimate of the input
	Cached  int     `json:"cached,omitempty"` // how much of it the provider's cache should have
	// Dropped are settings that the request could not carry, each with the reason.
	Dropped []string `json:"dropped,omitempty"`
}

// Usage counts tokens. Input is what was neither read from nor written to a cache.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cacheRead,omitempty"`
	CacheWrite int `json:"cacheWrite,omitempty"`
}

// Total is everything that went in and came out.
func (u Usage) Total() int { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Plus adds two usages.
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

// Said: the attempt ended. With Error it failed and its blocks are only what was
// seen of it; with Partial it was cut by an abort and its text is kept.
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
	// Unreadable are events of the stream that could not be read; the answer went on without.
	Unreadable []string `json:"unreadable,omitempty"`
	// Cost is what the whole of it cost, in billionths of a dollar, as the program says that answered; it counts where no price is known.
	Cost int64 `json:"cost,omitempty"`
}

// Failure is an error as the journal keeps it.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	RetryMS int64  `json:"retryMs,omitempty"` // how long to wait before the next attempt
	// Until is how long attempts go on, when the provider is out of order for longer than the
	// ordinary ones take.
	Until time.Time `json:"until,omitzero"`
	Final bool      `json:"final,omitempty"` // no further attempt will be made
	Next  string    `json:"next,omitempty"`  // the model that is asked from here on
}

// ToolBegan: a call with side effects is about to run. It never runs twice.
type ToolBegan struct {
	Call string `json:"call"`
	Name string `json:"name"`
}

// Deferred: the call is being answered by another thread, which began with this very commit; ToolRan follows
// once that has answered. Until then the run may rest.
type Deferred struct {
	Call   string   `json:"call"`
	Name   string   `json:"name"`
	Thread ThreadID `json:"thread"`
}

// Settled: the thread to which a call was deferred has answered it.
type Settled struct {
	Call   string `json:"call"`
	Blocks Blocks `json:"blocks"`
	Failed bool   `json:"failed,omitempty"`
}

// Outcome says how a call came to its result.
type Outcome string

// The outcomes of a call.
const (
	Ran         Outcome = "ran"
	Denied      Outcome = "denied"
	Skipped     Outcome = "skipped"
	Interrupted Outcome = "interrupted"
	Invalid     Outcome = "invalid" // unknown tool or wrong arguments; nothing ran
)

// ToolRan: the call has its result.
type ToolRan struct {
	Call          string   `json:"call"`
	Name          string   `json:"name"`
	Blocks        Blocks   `json:"blocks"`
	Failed        bool     `json:"failed,omitempty"` // the model is told of an error
	Exit          int      `json:"exit,omitempty"`   // the code of a command that ended with another than 0: a result like any other for the model
	Outcome       Outcome  `json:"outcome"`
	TookMS        int64    `json:"tookMs,omitempty"`
	Read          []string `json:"read,omitempty"`    // files it read
	Changed       []string `json:"changed,omitempty"` // files it wrote, moved or deleted
	Diff          string   `json:"diff,omitempty"`    // what it changed in them, as a unified diff: for people, the model does not see it
	UntrustedFrom string   `json:"foreign,omitempty"` // where its text is from, when others wrote it: "file a.go"
}

// Succeeded reports that the call ran and neither the tool nor the command in it failed.
func (t ToolRan) Succeeded() bool {
	return !t.Failed && t.Exit == 0 && (t.Outcome == Ran || t.Outcome == "")
}

// ApprovalAsked: the call waits for somebody's yes. The approval's row has the whole story.
type ApprovalAsked struct {
	ID      string    `json:"id"`
	Call    string    `json:"call"`
	Name    string    `json:"name"`
	Actions []string  `json:"actions"`
	Rule    string    `json:"rule,omitempty"`
	Preview string    `json:"preview,omitempty"`
	Until   time.Time `json:"until,omitzero"`
	Who     string    `json:"who,omitempty"`     // may answer
	Unbound string    `json:"unbound,omitempty"` // what of the call a yes cannot be held to
	Assessment
	// Args are the arguments that a tool hook gave the call instead of the model's; nil: none did. Why is what such a
	// hook says about the approval.
	Args json.RawMessage `json:"args,omitempty"`
	Why  string          `json:"why,omitempty"`
	// During says that the call runs already and waits for this inside: the answer is no
	// answer to the call, and when the process dies nothing waits for it any more.
	During bool `json:"during,omitempty"`
	// Fields are the values that a question asks for; none: a yes or a no is the answer.
	Fields []Field `json:"fields,omitempty"`
}

// Field is one value that a question asks for, in words for people.
type Field struct {
	Name     string   `json:"name"` // by which whoever asks knows it
	Label    string   `json:"label"`
	Kind     string   `json:"kind,omitempty"` // integer, number, boolean or list; "": text
	Hint     string   `json:"hint,omitempty"`
	Choices  []Choice `json:"choices,omitempty"` // none: anything may be written
	Several  bool     `json:"several,omitempty"` // more than one may be chosen
	Optional bool     `json:"optional,omitempty"`
	Values   []string `json:"values,omitempty"` // what stands there already
	Bounds
}

// Bounds are what a value must keep to beside its kind. Zero is no bound.
type Bounds struct {
	Format    string   `json:"format,omitempty"`    // of text: email, uri, date or date-time
	Pattern   string   `json:"pattern,omitempty"`   // of text: a regular expression that it matches
	MinLength int      `json:"minLength,omitempty"` // of text, in characters
	MaxLength int      `json:"maxLength,omitempty"`
	Min       *float64 `json:"min,omitempty"` // of numbers
	Max       *float64 `json:"max,omitempty"`
	MinItems  int      `json:"minItems,omitempty"` // of lists
	MaxItems  int      `json:"maxItems,omitempty"`
}

// Choice is one of the values that a Field may have.
type Choice struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// Assessment is what people are told of a call that waits for a yes: how much harm it could do and why, and what the rules say of each of its
// parts. All transports show the same.
type Assessment struct {
	Risk    string       `json:"risk,omitempty"`    // low, medium or high
	RiskWhy string       `json:"riskWhy,omitempty"` // a sentence
	Parts   []JudgedPart `json:"parts,omitempty"`
}

// Line is the grade with its reason; "": nothing is known.
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
	Depth   int    `json:"depth,omitempty"` // how deep it is nested: a part follows the one that starts it
}

// ApprovalAnswered: somebody, or the deadline, answered.
type ApprovalAnswered struct {
	ID   string `json:"id"`
	Call string `json:"call"`
	By   string `json:"by"`
	OK   bool   `json:"ok"`
	Note string `json:"note,omitempty"`
}

// ApprovalNoted: something happened to an approval that leaves it open: one of two
// people said yes, or nobody has answered for a while.
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
	FirstYes ApprovalNotice = "first yes" // another person must say yes too
	Reminder ApprovalNotice = "reminder"
)

// Steered: words for the run that is on. With no run on they are a prompt.
type Steered struct {
	From      Participant `json:"from"`
	Principal Principal   `json:"principal"`
	Blocks    Blocks      `json:"blocks"`
	Mode      Intake      `json:"mode"`
	Terms     Terms       `json:"terms,omitzero"`
	// Forgotten is as in Received.
	Forgotten bool `json:"forgotten,omitempty"`
}

// AbortAsked: the run (or, with All, the run and everything waiting) shall end.
// Once that run has ended it means nothing. Without a run it means whatever is on or waits when it is read.
type AbortAsked struct {
	Run string `json:"run"`
	By  string `json:"by"`
	All bool   `json:"all,omitempty"`
}

// Noted: something changed that the model should know (the date, memory, a
// mode); appended where it happened, never inserted.
type Noted struct {
	What string `json:"what"`
	Text string `json:"text"`
	// Whole is what is known now, where Text only says how that differs from the note before.
	Whole string `json:"whole,omitempty"`
}

// Knows is what a model knows that was shown the note.
func (n Noted) Knows() string {
	return cmp.Or(n.Whole, n.Text)
}

// Rolled: the window now begins at place KeepFrom, and of its pictures only the
// newest are shown, if it says how many.
type Rolled struct {
	KeepFrom int64  `json:"keepFrom"`
	Images   *int   `json:"images,omitempty"`
	Because  string `json:"because"`
}

// Compacted: everything up to place UpTo is replaced by the summary.
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

// Cleared: everything up to place UpTo is out of the window.
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

// RunEnded: the run is over. Cost is in billionths of a dollar.
type RunEnded struct {
	Run    string   `json:"run"`
	Reason Reason   `json:"reason"`
	Error  *Failure `json:"error,omitempty"`
	Text   string   `json:"text,omitempty"` // what people are told when there is no answer of the model's
	Steps  int      `json:"steps"`
	Usage  Usage    `json:"usage"`
	Cost   int64    `json:"cost"`
}

// Forked: this thread began as a copy of another one.
type Forked struct {
	From  ThreadID `json:"from"`
	AtSeq int64    `json:"atSeq"`
}

// Kind methods tie each body to its name.

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
