// Package agent is the loop: ask the model, run what it calls, ask again, until it
// has answered.
//
// It knows no store, no bus, no approvals and no platform; it talks to a Host. Whatever
// it decides, it decides from the folded log, so going on after a crash, after an
// approval and in the ordinary case are one and the same path. It promises exactly
// one RunEnded a run, a result for every call, and that a call with side effects
// which has begun is never run again.
//
// One call to a model is attempt, the calls of an answer opencalls, one call of a tool with
// its hooks toolcall, one commit record, what a summary leaves out compaction, another program
// in the model's place program; how long each may take is deadline. What stands here is the order
// of things: agent.go has the contract, run.go a run from its beginning to its end, ask.go one
// request, program.go a run that a program does.
package agent

import (
	"context"
	"errors"
	"time"

	"chorus/internal/agent/attempt"
	"chorus/internal/agent/deadline"
	"chorus/internal/agent/opencalls"
	"chorus/internal/agent/program"
	"chorus/internal/agent/record"
	"chorus/internal/agent/toolcall"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/transcript"
)

// Host is everything the loop needs of the world. It is called from one goroutine,
// except Live.
type Host interface {
	// Commit makes the batch durable and returns its events, numbered, together
	// with whatever others wrote meanwhile, in order. It fails with
	// journal.ErrMoved, having written nothing and bringing the news, when the batch
	// is Next or begins something (a run, a request, a call, the run's end) and the
	// loop has not seen everything. A request that a budget forbids fails with a
	// *ledger.Refusal. It does not obey ctx's cancellation.
	Commit(ctx context.Context, b record.Batch) ([]chat.Event, error)
	// Judge says whether a call may run.
	Judge(ctx context.Context, c ProposedCall) (approval.Ruling, error)
	// Live shows a piece that may be dropped. Safe for concurrent use, never blocks.
	Live(chat.Live)
}

// ProposedCall is a call of which it is not decided yet whether it may run.
type ProposedCall = opencalls.Proposed

// Agent is one configured agent, ready to run. It holds no state of a thread.
type Agent struct {
	// Terms are those this agent was made for; a prompt that came with others is
	// left to an agent that is made for them.
	Terms chat.Terms
	Tools toolcall.Tools
	// Program does the work of a run instead of a model and our tools; nil: they do.
	Program *program.Program
	// Model resolves "provider/model".
	Model func(name string) (model.Handle, error)
	// Head loads the head a run was started with.
	Head func(hash string) (*model.Head, error)
	// Begin says how a new run starts: its settings and its head.
	Begin func(ctx context.Context, log *transcript.Log, prompt transcript.Waiting) (Beginning, error)
	// Notes says what the model should know besides the conversation. It is asked when a run begins
	// (the log has no run then) and before every request, and must be cheap when nothing has changed.
	// Those that differ from what the window shows are written; may be nil.
	Notes func(ctx context.Context, log *transcript.Log) []chat.Noted
	// Defer hands a call of a tool with Spec.Deferred to another thread. An error is for the model to read.
	Defer func(ctx context.Context, call toolcall.Call, run *transcript.Run) (Deferral, error)
	// Before is asked before a call is judged. It may change the arguments, which are judged then, have a person asked,
	// or say why the call is not made; may be nil. After hears of a call that was made, and gives what the model is told
	// besides; may be nil.
	Before func(ctx context.Context, tool string, args []byte) toolcall.HookVerdict
	After  func(ctx context.Context, tool string, args []byte, ran chat.ToolRan) (more string)
	// Reap kills what still runs of a call, by its key, after a crash.
	Reap func(ctx context.Context, key string) error
	// Retry is what follows a failed attempt.
	Retry attempt.Policy
	// CacheMissed hears of answers that cost more than they should; may be nil.
	CacheMissed func(attempt.CacheMiss)
	Bounds      deadline.Bounds
	// Waits hears what the run waits for from now on; may be nil. Abandoned hears of
	// something that did not end when it was told to, and gives what to call should it end after all; may be nil.
	Waits     func(deadline.Wait)
	Abandoned func(what string) (back func())
	Now       func() time.Time
}

// Beginning is how a run starts.
type Beginning struct {
	Run   string // a new id
	Start chat.RunStarted
	Head  chat.Blob
}

// Deferral is how a call is handed to another thread.
type Deferral = opencalls.Deferral

// State is how Run left the thread.
type State string

// The states.
const (
	Nothing   State = "nothing"   // no run, nothing waiting
	Finished  State = "finished"  // a run ended; something may be waiting
	Suspended State = "suspended" // a call waits for somebody's yes, or for another agent
	Stopped   State = "stopped"   // the context ended; the run can go on later
)

// The causes the engine cancels a run's context with.
var (
	ErrAborted  = errors.New("aborted")
	ErrStopping = deadline.ErrStopping
)

// The limits that keep a run from going on for ever.
const (
	maxLost      = 20 // requests in a row lost in crashes: with the pauses between them a quarter of an hour
	maxContinued = 3  // answers in a row cut by the length limit
	maxFails     = 5  // failed results in a row
	maxRepeats   = 5  // identical calls in a row
)

// DefaultMaxSteps is how many answers a run may take when nothing else is said.
const DefaultMaxSteps = 20
