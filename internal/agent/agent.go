// Package agent is the loop: ask the model, run what it calls, ask again, until it
// has answered.
//
// It knows no store, no bus, no desk and no platform; it talks to a Host. Whatever
// it decides, it decides from the folded log, so going on after a crash, after an
// approval and in the ordinary case are one and the same path. It promises exactly
// one RunEnded a run, a result for every call, and that a call with side effects
// which has begun is never run again.
package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// Host is everything the loop needs of the world. It is called from one goroutine,
// except Live.
type Host interface {
	// Commit makes the batch durable and returns its events, numbered, together
	// with whatever others wrote meanwhile, in order. It fails with
	// journal.ErrMoved, having written nothing and bringing the news, when the batch
	// is Next or begins something (a run, a request, a call, the run's end) and the
	// loop has not seen everything. It does not obey ctx's cancellation.
	Commit(ctx context.Context, b Batch) ([]chat.Event, error)
	// Judge is the gate.
	Judge(ctx context.Context, q Question) (approval.Ruling, error)
	// Live shows a piece that may be dropped. Safe for concurrent use, never blocks.
	Live(chat.Live)
}

// Batch is what becomes true at once.
type Batch struct {
	Events []chat.Event
	Blobs  []chat.Blob
	Next   bool // its events must follow the last one the loop has seen
}

// Question is a call before the gate.
type Question struct {
	Call     chat.ToolUse
	Tool     tool.Tool
	Args     []byte // as the tool takes them
	Touches  []tool.Access
	Approved string              // the approval that said yes, when one did: its bound facts are checked again
	Senders  []transcript.Sender // everybody on whose words it would be done; the host fills it in
}

// Tools is the set of tools of an agent.
type Tools interface {
	// Resolve finds a tool by any of its names and brings the arguments into its
	// form; the error is for the model to read.
	Resolve(name string, args []byte) (tool.Tool, []byte, error)
	// Validate holds the arguments against the tool's schema, likewise.
	Validate(t tool.Tool, args []byte) error
}

// Engine is a model and what is known of it.
type Engine struct {
	Model model.Model
	Name  string // as the provider calls it
	Entry catalog.Entry
}

// Agent is one configured agent, ready to run. It holds no state of a thread.
type Agent struct {
	// Terms are those this agent was made for; a prompt that came with others is
	// left to an agent that is made for them.
	Terms chat.Terms
	Tools Tools
	// Model resolves "provider/model".
	Model func(name string) (Engine, error)
	// Head loads the head a run was started with.
	Head func(hash string) (*model.Head, error)
	// Begin says how a new run starts: its settings, its head, what to note.
	Begin func(ctx context.Context, log *transcript.Log, prompt transcript.Waiting) (Beginning, error)
	// Reap kills what still runs of a call, by its key, after a crash.
	Reap    func(ctx context.Context, key string) error
	Backoff model.Backoff
	// FallsBack reports errors after which the next model of the run's chain is
	// asked; nil: none.
	FallsBack func(model.ErrorKind) bool
	// CacheMissed hears of answers that cost more than they should; may be nil.
	CacheMissed func(CacheMiss)
	Bounds      Bounds
	// Waits hears what the run waits for from now on; may be nil. Abandoned hears of
	// something that did not end when it was told to, and gives what to call should it end after all; may be nil.
	Waits     func(Wait)
	Abandoned func(what string) (back func())
	Now       func() time.Time
	Random    func() float64 // in [0,1), for jitter
}

// CacheMiss is an answer for which the provider's cache held less than it should.
type CacheMiss struct {
	Run      string
	Step     int
	Model    string
	Expected int    // tokens
	Read     int    // tokens
	Fragment int    // the first message that differs from the last request; -1: none does
	Text     string // its beginning
}

// Beginning is how a run starts.
type Beginning struct {
	Run   string // a new id
	Start chat.RunStarted
	Head  chat.Blob
	Notes []chat.Noted // shown when they differ from what the window has
}

// State is how Run left the thread.
type State string

// The states.
const (
	Nothing   State = "nothing"   // no run, nothing waiting
	Finished  State = "finished"  // a run ended; something may be waiting
	Suspended State = "suspended" // a call waits for somebody's yes
	Stopped   State = "stopped"   // the context ended; the run can go on later
)

// The causes the engine cancels a run's context with.
var (
	ErrAborted  = errors.New("aborted")
	ErrStopping = errors.New("chorus is stopping")
)

// The bounds that keep a run from going on for ever.
const (
	maxLost        = 3 // requests in a row lost in crashes
	maxContinued   = 3 // answers in a row cut by the length limit
	maxCompactions = 6 // compactions without an answer between them; each forced one keeps half as much
	maxFails       = 5 // failed results in a row
	maxRepeats     = 5 // identical calls in a row
)

// DefaultMaxSteps is how many answers a run may take when nothing else is said.
const DefaultMaxSteps = 20

// Run goes on with the thread until a run has ended, waits for an approval, or
// there is nothing to do. The log must be folded up to the host's last event.
func (a *Agent) Run(ctx context.Context, log *transcript.Log, h Host) (State, error) {
	r := &runner{Agent: a, log: log, host: h, bounds: a.Bounds.Or(Defaults())}
	if err := r.recover(ctx); err != nil {
		return Stopped, err
	}
	for {
		state, err := r.next(ctx)
		switch {
		case errors.Is(err, journal.ErrMoved):
			// Something arrived: look again.
		case err != nil:
			return Stopped, errors.Join(err, r.release(ctx))
		case state != "":
			return state, r.release(ctx)
		}
	}
}

type runner struct {
	*Agent
	bounds Bounds
	log    *transcript.Log
	host   Host
	head   *model.Head
	room   []byte           // the last request's body, to be written over by the next
	sent   []*model.Message // what the last request showed, pairs and all
	held   *held            // a result that the next commit takes with it
	mu     sync.Mutex       // guards fatal while calls run together
	fatal  *chat.Failure    // our own failure: the run ends with it
}

// held is the last result of an answer. The request that shows it is asked for at
// once, so the two are written together; the log supposes it until then.
type held struct {
	batch    Batch
	takeBack func()
}

// hold keeps a result for the next commit.
func (r *runner) hold(b Batch, ran chat.ToolRan) {
	r.held = &held{b, r.log.Suppose(ran)}
}

// release writes a held result that no other commit took with it.
func (r *runner) release(ctx context.Context) error {
	if r.held == nil {
		return nil
	}
	h := r.held
	r.held = nil
	h.takeBack()
	return r.commit(ctx, h.batch)
}

// commit writes and folds what came of it, also when it had to be refused
// because the thread had moved.
func (r *runner) commit(ctx context.Context, b Batch) error {
	if r.held != nil {
		return r.commitHeld(ctx, b)
	}
	r.sign(b.Events)
	events, err := r.host.Commit(ctx, b)
	return r.fold(events, err)
}

// commitHeld takes the held result with it. If something came between, or a budget
// forbids what it was held for, the result is written by itself, behind the news.
func (r *runner) commitHeld(ctx context.Context, b Batch) error {
	h := r.held
	first := len(h.batch.Events)
	both := Batch{Events: slices.Concat(h.batch.Events, b.Events), Blobs: slices.Concat(h.batch.Blobs, b.Blobs), Next: true}
	r.sign(both.Events)
	events, err := r.host.Commit(ctx, both)
	r.held = nil
	if err == nil {
		return r.fold(events[first:], nil)
	}
	h.takeBack()
	if !errors.Is(err, journal.ErrMoved) && !errors.Is(err, journal.ErrBudget) {
		return err
	}
	if ferr := r.fold(events, nil); ferr != nil {
		return ferr
	}
	if werr := r.commit(ctx, h.batch); werr != nil {
		return werr
	}
	return err
}

// sign says which run events belong to.
func (r *runner) sign(events []chat.Event) {
	run := ""
	if cur := r.log.Run(); cur != nil {
		run = cur.ID
	}
	for i := range events {
		// A prompt that is refused belongs to no run.
		if _, refused := events[i].Body.(chat.Refused); events[i].Run == "" && !refused {
			events[i].Run = run
		}
	}
}

func (r *runner) fold(events []chat.Event, err error) error {
	for _, ev := range events {
		if ferr := r.log.Apply(ev); ferr != nil {
			return ferr
		}
	}
	return err
}

func (r *runner) write(ctx context.Context, bodies ...chat.Body) error {
	var b Batch
	for _, body := range bodies {
		b.Events = append(b.Events, chat.Event{Body: body})
	}
	return r.commit(ctx, b)
}

// recover settles what a crash left: a call that had begun is not run again.
func (r *runner) recover(ctx context.Context) error {
	for _, c := range r.log.Calls() {
		if !c.Began || c.Done {
			continue
		}
		if r.Reap != nil {
			r.waits("what still runs of an earlier call to be ended", r.bounds.Setup, 0)
			if err := r.Reap(ctx, callKey(r.log.Run(), c.Use.ID)); err != nil {
				return err
			}
		}
		err := r.write(ctx, chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Blocks: transcript.Interrupted(),
			Failed: true, Outcome: chat.Interrupted})
		if err != nil {
			return err
		}
	}
	return nil
}

// callKey marks the processes of a call. Models number their calls as they like,
// so the run is part of it.
func callKey(run *transcript.Run, call string) string {
	if run == nil {
		return call
	}
	return run.ID + "/" + call
}

// next does the one thing that is due. An empty state means: go on.
func (r *runner) next(ctx context.Context) (State, error) {
	run := r.log.Run()
	switch {
	case run == nil && len(r.log.Waiting()) == 0:
		return Nothing, nil
	case ctx.Err() != nil && (run == nil || !run.Aborted):
		return r.stopped(ctx)
	case run == nil:
		return r.begin(ctx)
	case run.Aborted:
		return Finished, r.end(ctx, chat.RunEnded{Reason: chat.EndAborted, Text: "Stopped."})
	case r.fatal != nil:
		return Finished, r.fail(ctx, r.fatal)
	case r.openCalls():
		return r.tools(ctx)
	case run.Failure != nil && run.Failure.Final:
		return Finished, r.fail(ctx, run.Failure)
	case run.Open && run.Lost+1 >= maxLost:
		return Finished, r.fail(ctx, &chat.Failure{Kind: "lost",
			Message: "the process ended three times while the model was answering; say it again to try once more"})
	case run.Final && !run.Open && run.Failure == nil:
		return r.afterAnswer(ctx, run)
	case run.Steps > 0 && run.Steps >= maxSteps(run):
		return Finished, r.end(ctx, limitEnd(run))
	case run.Fails >= maxFails:
		return Finished, r.fail(ctx, &chat.Failure{Kind: "breaker",
			Message: "stopped: five tool calls in a row failed. Look at the last errors, then say how to go on"})
	case run.Repeats >= maxRepeats:
		return Finished, r.fail(ctx, &chat.Failure{Kind: "breaker",
			Message: "stopped: the same tool call was made five times in a row"})
	default:
		return "", r.ask(ctx, run)
	}
}

// stopped: the context ended. An abort is in the journal; it may only not have
// been read yet. A run that has waited in vain is over.
func (r *runner) stopped(ctx context.Context) (State, error) {
	if s := stuckBy(ctx); s != nil && r.log.Run() != nil {
		return Finished, r.fail(ctx, failure(s))
	}
	if context.Cause(ctx) == ErrAborted {
		if err := r.commit(ctx, Batch{}); err != nil {
			return Stopped, err
		}
		if run := r.log.Run(); run != nil && run.Aborted {
			return "", nil
		}
	}
	return Stopped, context.Cause(ctx)
}

func maxSteps(run *transcript.Run) int {
	if run.Settings.MaxSteps > 0 {
		return run.Settings.MaxSteps
	}
	return DefaultMaxSteps
}

func limitEnd(run *transcript.Run) chat.RunEnded {
	return chat.RunEnded{Reason: chat.EndLimit,
		Text: fmt.Sprintf("Stopped at the limit of %d model calls; the task may be incomplete. Say \"go on\" to continue.", maxSteps(run))}
}

func (r *runner) openCalls() bool {
	for _, c := range r.log.Calls() {
		if !c.Done {
			return true
		}
	}
	return false
}

// together are the prompts that a run takes when it begins: the oldest, and those behind it
// that wait together with it, up to the first of somebody else. Nobody pays, or says yes, for another,
// and nobody is overtaken.
func together(waiting []transcript.Waiting) []int64 {
	seqs := []int64{waiting[0].Seq}
	for _, w := range waiting[1:] {
		if !waiting[0].Together || !w.Together || w.Terms != waiting[0].Terms || !w.Principal.Same(waiting[0].Principal) {
			break
		}
		seqs = append(seqs, w.Seq)
	}
	return seqs
}

// begin starts a run with the oldest waiting prompt.
func (r *runner) begin(ctx context.Context) (State, error) {
	prompt := r.log.Waiting()[0]
	if prompt.Terms != r.Terms {
		return Finished, nil
	}
	r.waits("what a run begins with", r.bounds.Setup, 0)
	b, err := r.Begin(ctx, r.log, prompt)
	if ctx.Err() != nil && stuckBy(ctx) == nil {
		return r.stopped(ctx) // the prompt waits for whoever comes next
	}
	if err != nil {
		if s := stuckBy(ctx); s != nil {
			err = s
		}
		return Finished, r.stillborn(ctx, b, prompt, err)
	}
	batch := Batch{Blobs: []chat.Blob{b.Head}}
	b.Start.Run, b.Start.Head, b.Start.Renderer = b.Run, b.Head.Hash, transcript.Renderer
	b.Start.Principal, b.Start.Terms = prompt.Principal, prompt.Terms
	batch.Events = append(batch.Events, chat.Event{Run: b.Run, Body: b.Start})
	for _, n := range b.Notes {
		if r.log.Note(n.What) != n.Text {
			batch.Events = append(batch.Events, chat.Event{Run: b.Run, Body: n})
		}
	}
	batch.Events = append(batch.Events, chat.Event{Run: b.Run, Body: chat.Took{Run: b.Run, Step: 1, Seqs: together(r.log.Waiting())}})
	r.head = nil
	return "", r.commit(ctx, batch)
}

// stillborn answers a prompt that could not even be started (no such model, no
// key) with the reason, so that it is neither lost nor tried for ever.
func (r *runner) stillborn(ctx context.Context, b Beginning, prompt transcript.Waiting, cause error) error {
	f := failure(cause)
	b.Start.Run, b.Start.Renderer, b.Start.Principal, b.Start.Terms = b.Run, transcript.Renderer, prompt.Principal, prompt.Terms
	var batch Batch
	for _, body := range []chat.Body{b.Start, chat.Took{Run: b.Run, Step: 1, Seqs: together(r.log.Waiting())},
		chat.RunEnded{Run: b.Run, Reason: chat.EndFailed, Error: f, Text: f.Message}} {
		batch.Events = append(batch.Events, chat.Event{Run: b.Run, Body: body})
	}
	return r.commit(ctx, batch)
}

// afterAnswer: the model has answered without a call. Either there is more for
// this run, or it is over.
func (r *runner) afterAnswer(ctx context.Context, run *transcript.Run) (State, error) {
	if run.Stop == chat.StopRefused {
		return Finished, r.fail(ctx, &chat.Failure{Kind: string(model.Refused), Message: "the model refused to answer this"})
	}
	if run.Stop == chat.StopLength && run.Continued <= maxContinued {
		text := fmt.Sprintf("Your answer reached the length limit (part %d). Go on exactly where it stopped, without repeating anything.", run.Continued)
		if r.log.Note("continue") != text {
			if err := r.write(ctx, chat.Noted{What: "continue", Text: text}); err != nil {
				return "", err
			}
		}
		return "", r.ask(ctx, run)
	}
	if run.Stop == chat.StopLength {
		return Finished, r.end(ctx, chat.RunEnded{Reason: chat.EndLimit,
			Text: fmt.Sprintf("The answer reached the length limit %d times and is cut off. Say \"go on\" to continue.", run.Continued)})
	}
	if run.Steps < maxSteps(run) {
		if took, err := r.take(ctx, run); took || err != nil {
			if err == nil {
				err = r.ask(ctx, r.log.Run())
			}
			return "", err
		}
	}
	return Finished, r.end(ctx, chat.RunEnded{Reason: chat.EndDone})
}

// take gives the run the words that were meant for it while it was on.
func (r *runner) take(ctx context.Context, run *transcript.Run) (bool, error) {
	var seqs []int64
	for _, w := range r.log.Waiting() {
		if w.Steer || w.Intake == chat.Inject || w.Intake == chat.Interrupt {
			seqs = append(seqs, w.Seq)
		}
	}
	if len(seqs) == 0 {
		return false, nil
	}
	return true, r.write(ctx, chat.Took{Run: run.ID, Step: run.Step + 1, Seqs: seqs})
}

// interrupted reports words that want the rest of the batch skipped.
func (r *runner) interrupted() bool {
	for _, w := range r.log.Waiting() {
		if w.Intake == chat.Interrupt {
			return true
		}
	}
	return false
}

func (r *runner) fail(ctx context.Context, f *chat.Failure) error {
	reason := chat.EndFailed
	switch f.Kind {
	case "denied":
		reason = chat.EndDenied
	case "budget":
		reason = chat.EndBudget
	}
	return r.end(ctx, chat.RunEnded{Reason: reason, Error: f, Text: f.Message})
}

// end is the run's last commit. Calls without a result get one first, in the same
// transaction, so that the next run finds every pair whole.
func (r *runner) end(ctx context.Context, e chat.RunEnded) error {
	run := r.log.Run()
	e.Run, e.Steps, e.Usage = run.ID, run.Steps, run.Usage
	var batch Batch
	for _, c := range r.log.Calls() {
		if c.Done {
			continue
		}
		ran := chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Failed: true, Outcome: chat.Skipped,
			Blocks: chat.TextBlocks("skipped: the run ended before this call was made")}
		if c.Began {
			ran.Outcome, ran.Blocks = chat.Interrupted, transcript.Interrupted()
		}
		batch.Events = append(batch.Events, chat.Event{Body: ran})
	}
	if run.AbortAll {
		for _, w := range r.log.Waiting() {
			batch.Events = append(batch.Events, chat.Event{Body: chat.Refused{Seq: w.Seq, Why: "stopped by " + run.AbortedBy}})
		}
	}
	batch.Events = append(batch.Events, chat.Event{Body: e})
	return r.commit(ctx, batch)
}
