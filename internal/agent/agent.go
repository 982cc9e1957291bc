// Package agent is the loop: ask the model, run what it calls, and ask again until it has answered.
//
// It knows no store, no bus, no approvals and no platform; it talks to a Host. It decides
// everything from the folded log, so continuing after a crash or an approval uses the same path
// as the ordinary case. It guarantees exactly one RunEnded per run and a result for every call. A
// call with side effects that has begun is never run again.
//
// The subpackages are:
//
//   - attempt: one call to a model
//   - opencalls: the calls of an answer
//   - toolcall: one call of a tool with its hooks
//   - record: one commit
//   - compaction: what a summary leaves out
//   - program: another program in place of the model
//   - deadline: how long each of these may take
//
// This package puts them in order: agent.go has the contract, run.go a run from beginning to
// end, ask.go one request, program.go a run that a program does.
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

// Host is everything the loop needs from the outside. All methods but Live are called from one goroutine.
type Host interface {
	// Commit makes the batch durable. It returns the batch's events, numbered, together with what
	// others wrote meanwhile, in order. It ignores cancellation of ctx. If the loop has not seen
	// everything and the batch is Next or begins something (a run, a request, a call, the run's
	// end), Commit writes nothing, returns the new events and fails with journal.ErrMoved. A
	// request that a budget forbids fails with a *ledger.Refusal.
	Commit(ctx context.Context, b record.Batch) ([]chat.Event, error)
	// Judge says whether a call may run.
	Judge(ctx context.Context, c ProposedCall) (approval.Ruling, error)
	// Live shows a piece that may be dropped. It is safe for concurrent use and never blocks.
	Live(chat.Live)
}

// ProposedCall is a call that has not been judged yet.
type ProposedCall = opencalls.Proposed

// Agent is one configured agent, ready to run. It holds no state of a thread.
type Agent struct {
	// Terms are those this agent was made for. Prompts with other terms are left to an agent made for them.
	Terms chat.Terms
	Tools toolcall.Tools
	// Program does the work of a run in place of a model and our tools; nil if they do it.
	Program *program.Program
	// Model resolves "provider/model".
	Model func(name string) (model.Handle, error)
	// Head loads the head that a run was started with.
	Head func(hash string) (*model.Head, error)
	// Begin says how a new run starts: its settings and its head.
	Begin func(ctx context.Context, log *transcript.Log, prompt transcript.Waiting) (Beginning, error)
	// Notes says what the model should know besides the conversation. It is called when a run
	// begins (the log has no run then) and before every request, and must be cheap when nothing has
	// changed. Notes that differ from what the window shows are written. It may be nil.
	Notes func(ctx context.Context, log *transcript.Log) []chat.Noted
	// Defer hands a call of a tool with Spec.Deferred to another thread. The model reads the error.
	Defer func(ctx context.Context, call toolcall.Call, run *transcript.Run) (Deferral, error)
	// Before is called before a call is judged. It may change the arguments, require approval, or
	// refuse the call. The changed arguments are the ones that are judged. After is called once a
	// call was made and returns what else to tell the model. Both may be nil.
	Before func(ctx context.Context, tool string, args []byte) toolcall.HookVerdict
	After  func(ctx context.Context, tool string, args []byte, ran chat.ToolRan) (more string)
	// Reap kills what is still running of a call, by its key, after a crash.
	Reap func(ctx context.Context, key string) error
	// Retry says what follows a failed attempt.
	Retry attempt.Policy
	// CacheMissed is told of answers that cost more than they should; may be nil.
	CacheMissed func(attempt.CacheMiss)
	Bounds      deadline.Bounds
	// Waits is told what the run now waits for; may be nil. Abandoned is told of something that did
	// not end when told to, and returns a function to call if it ends after all; may be nil.
	Waits     func(deadline.Wait)
	Abandoned func(what string) (back func())
	Now       func() time.Time
}

// Beginning says how a run starts.
type Beginning struct {
	Run   string // a new id
	Start chat.RunStarted
	Head  chat.Blob
}

// Deferral says how a call is handed to another thread.
type Deferral = opencalls.Deferral

// State is how Run left the thread.
type State string

// The states.
const (
	Nothing   State = "nothing"   // no run, nothing waiting
	Finished  State = "finished"  // a run ended; something may be waiting
	Suspended State = "suspended" // a call waits for approval or for another agent
	Stopped   State = "stopped"   // the context ended; the run can continue later
)

// The causes with which the engine cancels a run's context.
var (
	ErrAborted  = errors.New("aborted")
	ErrStopping = deadline.ErrStopping
)

// The limits that stop an endless run.
const (
	maxLost      = 20 // requests in a row lost in crashes; with the pauses between them a quarter of an hour
	maxContinued = 3  // answers in a row cut by the length limit
	maxFails     = 5  // failed results in a row
	maxRepeats   = 5  // identical calls in a row
)

// DefaultMaxSteps is how many answers a run may take by default.
const DefaultMaxSteps = 20
