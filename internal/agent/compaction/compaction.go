// Package compaction plans how a summary replaces the older part of a window,
// and says what to record of the summary. It sends and writes nothing: the loop
// makes the request as an ordinary attempt.
package compaction

import (
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/transcript"
)

// maxInARow is how many compactions may follow each other without an
// answer in between. Each forced one keeps half as much.
const maxInARow = 6

// Plan is what to do.
type Plan struct {
	// Nothing says that there is nothing to leave out and the turn should simply be tried.
	Nothing bool
	// Failure says that the conversation cannot be shortened further.
	Failure *chat.Failure
	// Done is what to write without asking a model. If it is nil, send
	// the request and pass its answer to Answered.
	Done    *chat.Compacted
	Request model.Request
	Purpose chat.Purpose
	draft   chat.Compacted
}

// Make plans the next compaction of a run.
func Make(log *transcript.Log, run *transcript.Run, head *model.Head) (Plan, error) {
	sees := log.Seq()
	cut, ok := log.Plan(sees, run.Settings)
	if !ok && run.TooLong == 0 {
		return Plan{Nothing: true}, nil
	}
	if !ok || run.Compacted >= maxInARow {
		return Plan{Failure: &chat.Failure{Kind: string(model.TooLong),
			Message: "the conversation does not fit the model's context window and cannot be shortened further; start a new thread or choose a model with a larger context window"}}, nil
	}
	read, modified := log.Files()
	p := Plan{draft: chat.Compacted{UpTo: cut.UpTo, Read: read, Modified: modified, Tokens: log.Tokens()}}
	purpose, mechanical := run.SummaryWay()
	if p.Purpose = purpose; mechanical {
		done := p.draft
		done.Step, done.Attempt, done.How = run.Step, run.Attempt, "mechanical"
		done.Summary = log.Mechanical(sees, cut)
		p.Done = &done
		return p, nil
	}
	var err error
	if purpose == chat.ForExcerpt {
		p.draft.How = "excerpt"
		p.Request, err = log.ExcerptRequest(sees, cut)
	} else {
		p.draft.How = "model"
		p.Request, err = log.CompactionRequest(head, sees, cut)
	}
	return p, err
}

// Answered returns what to write about the model's answer: the compaction, or why there is none yet.
func (p Plan) Answered(said chat.Said) chat.Body {
	summary := strings.TrimSpace(said.Blocks.Text())
	if said.Error == nil && !said.Partial && summary == "" {
		said.Stop, said.Error = chat.StopError, &chat.Failure{Kind: string(model.Refused), Message: "the model wrote no summary"}
	}
	if said.Error != nil || said.Partial {
		if said.Error != nil && (said.Error.Kind == string(model.Refused) || said.Error.Kind == string(model.BadRequest)) {
			said.Error.Final = false // the mechanical summary can still be tried
		}
		said.Blocks = nil // half a summary is no answer
		return said
	}
	done := p.draft
	done.Step, done.Attempt, done.Summary, done.Usage = said.Step, said.Attempt, summary, said.Usage
	return done
}
