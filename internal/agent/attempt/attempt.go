// Package attempt makes one call to a model and returns how it ended: with an answer, or with a
// failure after which the same model is asked again, another one is, or none.
//
// It writes nothing and waits only for the stream. Every attempt is an event, so the pause before
// the next one belongs to the loop, is in the journal, and survives a crash.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/chat"
	"chorus/internal/model"
)

// Policy says what follows a failed attempt.
type Policy struct {
	Backoff model.Backoff
	// FallsBack reports errors after which the next model of the run's chain is asked; nil means none.
	FallsBack func(model.ErrorKind) bool
	Random    func() float64 // in [0,1), for jitter; nil means no jitter
	// Outage is how long to keep trying a provider that is down, counted from the first failure,
	// when the usual attempts are used up and no other model is left. 0 means not at all.
	Outage time.Duration
}

// Failures are the consecutive failures of the same model, including the newest.
type Failures struct {
	Count int
	Since time.Time // time of the first; zero means now
}

// Stream sends a request, passes the pieces of the answer to live as they arrive, and returns how
// it ended. If it returns an error, said has the text that arrived before it.
func Stream(ctx context.Context, h model.Handle, p model.Prepared, said chat.Said, live func(chat.Delta)) (chat.Said, error) {
	var text, thinking strings.Builder
	show := func(what chat.DeltaKind, call string, offset int, s string) {
		if s != "" {
			live(chat.Delta{Step: said.Step, Attempt: said.Attempt, What: what, Call: call, Offset: offset, Text: s})
		}
	}
	args := map[string]int{}
	var failed error = &model.Error{Kind: model.Network, Provider: h.Entry.Provider, Model: h.Name, Message: "the answer ended without an end mark"}
	for chunk, err := range h.Model.Stream(ctx, p) {
		if err != nil {
			failed = err
			break
		}
		switch c := chunk.(type) {
		case model.TextDelta:
			show(chat.DeltaText, "", text.Len(), c.Text)
			text.WriteString(c.Text)
		case model.ThinkingDelta:
			show(chat.DeltaThinking, "", thinking.Len(), c.Text)
			thinking.WriteString(c.Text)
		case model.ArgsDelta:
			show(chat.DeltaArgs, c.Call, args[c.Call], c.Text)
			args[c.Call] += len(c.Text)
		case model.Unreadable:
			if len(said.Unreadable) < maxUnreadable {
				said.Unreadable = append(said.Unreadable, c.Data)
			}
		case model.Done:
			said.Blocks, said.Usage, said.Stop = c.Blocks, c.Usage, c.Stop
			return said, nil
		}
	}
	if text.Len() > 0 {
		said.Blocks = chat.TextBlocks(text.String())
	}
	said.Received = text.Len() + thinking.Len()
	for _, n := range args {
		said.Received += n
	}
	said.Partial = true
	return said, failed
}

// maxUnreadable limits how many unreadable events of a stream are kept.
const maxUnreadable = 10

// Failed adds to an attempt why it failed and what follows: a pause and another attempt
// (RetryMS), another model of the chain (Next), or nothing (Final).
func (p Policy) Failed(said chat.Said, err error, failures Failures, now time.Time, current string, chain []string) chat.Said {
	said.Stop, said.Error = chat.StopError, Failure(err)
	var e *model.Error
	if !errors.As(err, &e) {
		said.Error.Final = true
		return said
	}
	if e.Kind == model.TooLong {
		return said // a compaction may help
	}
	random := 0.0
	if p.Random != nil {
		random = p.Random()
	}
	pause, again := p.Backoff.Pause(failures.Count, e, random)
	if !again && said.Blocks == nil {
		// Never switch in the middle of an answer that somebody has begun to read.
		said.Error.Next = p.Next(err, current, chain)
	}
	if said.Error.Next != "" {
		return said
	}
	if !again && p.Outage > 0 && p.Backoff.Retries >= 0 && e.Retryable() {
		since := failures.Since
		if since.IsZero() {
			since = now
		}
		pause = p.Backoff.OutagePause(failures.Count, e, random)
		if until := since.Add(p.Outage); !now.Add(pause).After(until) {
			again, said.Error.Until = true, until
		}
	}
	if !again && e.RetryAfter > 0 {
		said.Error.Message += fmt.Sprintf("; it asks to wait %s", e.RetryAfter)
	}
	said.Error.RetryMS, said.Error.Final = pause.Milliseconds(), !again
	return said
}

// Next returns the model of the chain to try after an error, or "".
func (p Policy) Next(err error, current string, chain []string) string {
	if p.FallsBack == nil || !p.FallsBack(model.KindOf(err)) {
		return ""
	}
	if i := slices.Index(chain, current); i >= 0 {
		chain = chain[i+1:]
	}
	if len(chain) == 0 {
		return ""
	}
	return chain[0]
}

// Failure converts an error into the form stored in the journal.
func Failure(err error) *chat.Failure {
	f := &chat.Failure{Kind: "internal", Message: err.Error()}
	if s, ok := errors.AsType[*deadline.Stuck](err); ok {
		f.Kind, f.Message = "stuck", "stopped: "+s.Error()+"; send your message again to retry"
	}
	if kind := model.KindOf(err); kind != "" {
		f.Kind = string(kind)
	}
	return f
}
