// Package program lets another program do a run's work in place of a model: one
// with a model and tools of its own, such as the claude and codex command lines.
// Package worker starts and understands them.
//
// What the program says and does becomes the same events as those of a model: an
// answer with calls, their results, and so on. It guarantees that
//   - each step of the program is reserved in the budget before it is taken, and the program is ended if the budget refuses;
//   - a call that needs approval ends the program instead of holding it in memory; once answered, it continues in its own session;
//   - if the program was ended in the middle of something, it is told when it continues, and the journal has a result for it;
//   - a session that the program no longer knows starts over with everything that was said.
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

// SessionNote is the note that keeps the program's own name for its session in a thread.
const SessionNote = "worker session"

// Program does the work of a run in place of a model and our tools.
type Program struct {
	worker.Worker
	Name  string        // for people
	Quiet time.Duration // how long it may be silent
	Dir   string
	// Preamble says who the agent is. It precedes the first prompt of a session.
	Preamble string
}

// Loop is what a program needs of the loop that runs it.
type Loop interface {
	// Write commits events and folds the result into the log; see
	// record.Recorder. Without events it only fetches what is new.
	Write(ctx context.Context, bodies ...chat.Body) error
	// Asked returns the next request of the run.
	Asked(run *transcript.Run) chat.Asked
	// Resolve finds one of our tools by name.
	Resolve(name string, args []byte) (tool.Tool, []byte, error)
	// Gate says whether a call may be made, and writes the consequence: a refusal, or that somebody is asked.
	Gate(ctx context.Context, c transcript.Call, t tool.Tool, args []byte) (Verdict, error)
	// Live shows a piece that may be dropped.
	Live(chat.Live)
	// Waits tells the watchdog what the run waits for from now on.
	Waits(deadline.Wait)
}

// Verdict is what the rules say about a call.
type Verdict int

// The verdicts.
const (
	Refused Verdict = iota
	Allowed
	Waits   // for approval
	EndsRun // refused, and the run ends with it
)

// Left says in which state a run is after its program has ended.
type Left int

// The states.
const (
	GoesOn    Left = iota // the loop checks the log
	Suspended             // until somebody has answered
)

// Start is one start of a program, for one run.
type Start struct {
	Loop  Loop
	Log   *transcript.Log // with a run that is on
	Key   string          // marks the program's processes, so that they can be found after a crash
	Grace time.Duration   // for something that was told to end
	Now   func() time.Time
}

// Run starts the program and accompanies it until it has ended. A returned failure
// ends the run. No process of an earlier start may still exist.
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
	prompt = cmp.Or(prompt, "You were interrupted because the process that you ran in ended. Check how far your last step got, then continue with your task.")
	if err := s.ask(prompt); err != nil || s.fatal != nil { // if a budget forbids it, nothing is started
		return GoesOn, s.fatal, err
	}
	s.waits()
	out, err := p.Work(ctx, worker.Job{Prompt: prompt, Session: id, Dir: p.Dir, Key: start.Key}, s)
	left, err := s.end(out, err)
	return left, s.fatal, err
}
