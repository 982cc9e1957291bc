package service

import (
	"context"
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/pattern"
	"chorus/internal/room/render"
)

// Limits for reading and showing one run.
const (
	maxRunEvents = 20_000
	maxSpans     = 500
)

// Timeline implements the operation of that name.
func (o *Handler) Timeline(ctx context.Context, by operation.Caller, in operations.RunAt) (operations.Timeline, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Timeline{}, err
	}
	before := row.Next + 1
	if in.At > 0 {
		before = min(before, in.At+1)
	}
	starts, err := o.app.DB.Seqs(ctx, row.ID, chat.KindRunStarted, 0, before, 1)
	if err != nil {
		return operations.Timeline{}, err
	}
	if len(starts) == 0 {
		return operations.Timeline{}, operation.Errorf(operation.NotFound, "no run of this session starts there")
	}
	events, err := o.runEvents(ctx, row.ID, starts[0])
	if err != nil {
		return operations.Timeline{}, err
	}
	return o.timeline(ctx, row, events)
}

// runEvents returns the events from the start of a run to its end, including those of others.
func (o *Handler) runEvents(ctx context.Context, thread chat.ThreadID, start int64) ([]chat.Event, error) {
	var out []chat.Event
	run := ""
	for ev, err := range o.app.DB.AllEvents(ctx, thread, start-1) {
		if err != nil {
			return nil, err
		}
		if b, ok := ev.Body.(chat.RunStarted); ok && run == "" {
			run = b.Run
		}
		out = append(out, ev)
		end, over := ev.Body.(chat.RunEnded)
		if over && end.Run == run || len(out) == maxRunEvents {
			break
		}
	}
	return out, nil
}

func (o *Handler) timeline(ctx context.Context, row journal.Thread, events []chat.Event) (operations.Timeline, error) {
	hide := o.app.Logs.Redactor()
	label := func(name string, args []byte) string { return "" }
	if b, err := o.BareToolbox(); err == nil {
		label = b.Label
	}
	t := render.StepsOf(events, label)
	var knew []string
	if t.Head != "" {
		knew, _ = o.app.PromptSources(t.Head) // the prompt may be lost, but the work of the run is still known
	}
	out := operations.Timeline{Run: t.Run, Seq: events[0].Seq, Model: t.Model, Profile: t.Profile, StartedAt: t.Began, EndedAt: t.Ended, Spans: []operations.Span{}, Knew: knew,
		Usage: feed.Usage{InputTokens: t.Usage.Input, OutputTokens: t.Usage.Output, CacheReadTokens: t.Usage.CacheRead, CacheWriteTokens: t.Usage.CacheWrite}}
	if t.End != nil {
		out.Outcome, out.Cost = string(t.End.Reason), feed.USD(t.End.Cost)
	}
	if len(t.Prompts) > 0 {
		asked, err := o.app.DB.Event(ctx, row.ID, t.Prompts[0])
		if err != nil {
			return out, fmt.Errorf("the prompt of run %s: %w", t.Run, err)
		}
		if waited := t.Began.Sub(asked.At); waited.Milliseconds() > 0 {
			out.Spans = append(out.Spans, operations.Span{Kind: operations.SpanQueue, Label: "waited to start", Seq: asked.Seq, Began: asked.At, TookMS: waited.Milliseconds()})
		}
	}
	for i, s := range t.Steps {
		if len(out.Spans) >= maxSpans {
			out.Hidden = len(t.Steps) - i
			break
		}
		if pause, ok := pauseBefore(t.Steps[:i], s); ok {
			out.Spans = append(out.Spans, pause)
		}
		span := operations.Span{Kind: string(s.Kind), Label: hide.Text(s.What), Seq: s.Seq, Began: s.Began, TookMS: s.Took.Milliseconds(), Open: s.Open, State: hide.Text(s.State)}
		if s.Open {
			span.TookMS = max(0, o.app.Now().Sub(s.Began).Milliseconds())
		}
		out.Spans = append(out.Spans, span)
	}
	return out, nil
}

var promptParts = pattern.Lazy(`(?m)^<(?:doc name|repository-instructions file)="([^"\n]{1,200})">$`)

// PromptSources returns the docs and instructions in the system prompt of a run, by the blob of its head.
func (s *Service) PromptSources(hash string) ([]string, error) {
	head, err := s.Setup.Head(hash)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range promptParts().FindAllStringSubmatch(head.System, -1) {
		out = append(out, m[1])
	}
	return out, nil
}

// pauseBefore is the time between a failed request and its next attempt.
func pauseBefore(before []render.Step, s render.Step) (operations.Span, bool) {
	if len(before) == 0 || s.Kind != render.StepModel {
		return operations.Span{}, false
	}
	last := before[len(before)-1]
	from := last.Began.Add(last.Took)
	if last.Kind != render.StepModel || !strings.HasPrefix(last.State, "failed") || s.Began.Sub(from).Milliseconds() <= 0 {
		return operations.Span{}, false
	}
	return operations.Span{Kind: operations.SpanPause, Label: "waited before the next attempt", Began: from, TookMS: s.Began.Sub(from).Milliseconds()}, true
}
