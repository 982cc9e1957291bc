// Package program does a run's work with another program in the model's place: one with a model and tools of its own, such as the
// claude and codex command lines (package worker starts and understands them).
//
// What the program says and does becomes the same events as those of a model: an answer with calls, their results, and so on. It promises that
//   - each step of the program is reserved in the budget before it is taken, and the program is ended where the budget refuses;
//   - a call that needs a yes ends the program instead of holding it in memory; it goes on in its own session when it is answered;
//   - whatever the program was in the middle of when it was ended is told to it when it goes on, and has a result in the journal;
//   - a session that the program does not know any more begins anew with everything that was said.
package program

import (
	"cmp"
	"context"
	"strings"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/chat"
	"chorus/internal/tool"
	"chorus/internal/transcript"
	"chorus/internal/worker"
)

// SessionNote is the note that keeps a program's own name for what it did in a thread.
const SessionNote = "worker session"

// Program does the work of a run instead of a model and our tools.
type Program struct {
	worker.Worker
	Name  string        // for people
	Quiet time.Duration // how long it may say nothing
	Dir   string
	// Preamble says who the agent is; it stands before the first prompt of a session.
	Preamble string
}

// Loop is what a program's work needs of the loop that it is a part of.
type Loop interface {
	// Write commits events and folds what came of it into the log; see record.Recorder. Without events it brings the news.
	Write(ctx context.Context, bodies ...chat.Body) error
	// Asked is the next request of the run.
	Asked(run *transcript.Run) chat.Asked
	// Resolve finds a tool of ours by its name.
	Resolve(name string, args []byte) (tool.Tool, []byte, error)
	// Gate says whether a call may be made, and writes down what comes of it: a refusal, or that somebody is asked.
	Gate(ctx context.Context, c transcript.Call, t tool.Tool, args []byte) (Verdict, error)
	// Live shows a piece that may be dropped.
	Live(chat.Live)
	// Waits tells whoever watches over the run what it waits for from now on.
	Waits(deadline.Wait)
}

// Verdict is what the rules say of a call.
type Verdict int

// The verdicts.
const (
	Refused Verdict = iota
	Allowed
	Waits   // for somebody's yes
	EndsRun // refused, and the run ends with it
)

// Left is how a run is left when its program has ended.
type Left int

// The ways.
const (
	GoesOn    Left = iota // the loop looks at the log
	Suspended             // until somebody has answered
)

// Start is one start of a program, for one run.
type Start struct {
	Loop  Loop
	Log   *transcript.Log // with a run that is on
	Key   string          // marks the program's processes, so that they are found after a crash
	Grace time.Duration   // for what was told to end
	Now   func() time.Time
}

// Run starts the program and goes along with it until it has ended. A failure is one that the run ends with. No process of an earlier
// start may be left.
func (p *Program) Run(ctx context.Context, start Start) (Left, *chat.Failure, error) {
	s := &session{Program: p, Start: start, ctx: ctx, run: start.Log.Run(), began: map[string]chat.ToolUse{}, grants: map[string]transcript.Call{}}
	prompt, err := s.settle()
	if err != nil {
		return GoesOn, nil, err
	}
	id := s.Log.Note(SessionNote)
	if words := s.Log.Heard(id == ""); words != "" {
		prompt = strings.TrimSpace(words + "\n\n" + prompt)
		if id == "" && p.Preamble != "" {
			prompt = p.Preamble + "\n\n" + prompt
		}
	}
	prompt = cmp.Or(prompt, "You were interrupted: the process that you ran in ended. Look at what is there of your last step, then go on with your task.")
	if err := s.ask(prompt); err != nil || s.fatal != nil { // where a budget forbids it nothing is started
		return GoesOn, s.fatal, err
	}
	s.waits()
	out, err := p.Work(ctx, worker.Job{Prompt: prompt, Session: id, Dir: p.Dir, Key: start.Key}, s)
	left, err := s.end(out, err)
	return left, s.fatal, err
}
