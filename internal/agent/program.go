package agent

import (
	"context"
	"fmt"

	"chorus/internal/agent/deadline"
	"chorus/internal/agent/opencalls"
	"chorus/internal/agent/program"
	"chorus/internal/chat"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// program is next for a run that another program does.
func (r *runner) program(ctx context.Context, run *transcript.Run) (State, error) {
	switch {
	case run.Failure != nil && run.Failure.Final:
		return Finished, r.fail(ctx, run.Failure)
	case run.Open && run.Lost+1 >= maxLost:
		return Finished, r.fail(ctx, &chat.Failure{Kind: "lost", Message: fmt.Sprintf("the process ended %d times while %s was working", maxLost, r.Program.Name)})
	case run.Final && !run.Open && run.Failure == nil && !r.log.OpenCalls():
		if took, err := r.take(ctx, run); took || err != nil {
			return "", err
		}
		end := chat.RunEnded{Reason: chat.EndDone}
		if !run.Spoke {
			end.Text = r.Program.Name + " ended without an answer."
		}
		return Finished, r.end(ctx, end)
	}
	for _, c := range r.log.Calls() {
		if c.Approval != "" && !c.Answered && !c.Done {
			return Suspended, nil
		}
	}
	if r.Reap != nil {
		r.waits(deadline.Wait{For: "leftover processes of " + r.Program.Name + " to end", Quiet: r.bounds.Setup})
		if err := r.Reap(ctx, opencalls.Key(run, "worker")); err != nil {
			return "", err
		}
	}
	left, failure, err := r.Program.Run(ctx, program.Start{Loop: programLoop{r}, Log: r.log, Key: opencalls.Key(run, "worker"), Grace: r.bounds.Grace, Now: r.Now})
	if failure != nil {
		r.fatal = failure
	}
	if left == program.Suspended {
		return Suspended, err
	}
	return "", err
}

// programLoop implements program.Loop.
type programLoop struct{ r *runner }

func (l programLoop) Write(ctx context.Context, bodies ...chat.Body) error {
	return l.r.Write(ctx, bodies...)
}
func (l programLoop) Asked(run *transcript.Run) chat.Asked { return l.r.asked(run, chat.ForTurn) }
func (l programLoop) Live(piece chat.Live)                 { l.r.host.Live(piece) }
func (l programLoop) Waits(w deadline.Wait)                { l.r.waits(w) }

func (l programLoop) Resolve(name string, args []byte) (tool.Tool, []byte, error) {
	return l.r.Tools.Resolve(name, args)
}

func (l programLoop) Gate(ctx context.Context, c transcript.Call, t tool.Tool, args []byte) (program.Verdict, error) {
	verdict, err := l.r.calls.Gate(ctx, c, t, args)
	switch {
	case err != nil:
		return program.Refused, err
	case verdict == opencalls.Open:
		return program.Allowed, nil
	case verdict == opencalls.Suspended:
		return program.Waits, nil
	case l.r.fatal != nil:
		return program.EndsRun, nil
	}
	return program.Refused, nil
}
