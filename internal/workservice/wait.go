package workservice

import (
	"cmp"
	"context"
	"slices"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

const (
	waitDefault = 25 * time.Second
	// waitPage is how many events one response has.
	waitPage = 200
)

// WaitForWork implements the operation of the same name.
func (h *Handler) WaitForWork(ctx context.Context, by operation.Caller, in operations.WorkWait) (operations.WorkNews, error) {
	out := operations.WorkNews{Items: []operations.WorkEvent{}, After: in.After}
	if in.Task != "" {
		if _, _, err := h.task(ctx, by, in.Task); err != nil {
			return out, err
		}
	}
	if in.After == 0 {
		if _, err := h.visible(ctx, by, in.Project); err != nil {
			return out, err
		}
		newest, err := h.o.Projects.Events(ctx, work.EventFilter{Limit: 1})
		if err != nil {
			return out, err
		}
		if len(newest) > 0 {
			out.After = newest[0].ID
			return out, nil
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var changes <-chan struct{}
	if h.o.Changes != nil {
		changes = h.o.Changes(ctx) // before the first check, so that nothing is missed after it
	}
	over := time.NewTimer(cmp.Or(time.Duration(in.Wait)*time.Second, waitDefault))
	defer over.Stop()
	for {
		if err := h.eventsAfter(ctx, by, in, &out); err != nil || len(out.Items) > 0 {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-over.C:
			return out, nil
		case _, open := <-changes:
			if !open {
				return out, nil
			}
		}
	}
}

// eventsAfter adds a page of the events after out.After that the caller
// sees, and moves out.After past what was read.
func (h *Handler) eventsAfter(ctx context.Context, by operation.Caller, in operations.WorkWait, out *operations.WorkNews) error {
	visible, err := h.visible(ctx, by, in.Project) // each time, because rights may have changed meanwhile
	if err != nil {
		return err
	}
	name := h.names(ctx)
	for {
		page, err := h.o.Projects.Events(ctx, work.EventFilter{Project: in.Project, Task: in.Task, Forward: true, After: out.After, Limit: waitPage})
		if err != nil {
			return err
		}
		for _, e := range page {
			out.After = e.ID
			if by.May(operation.Admin) || slices.Contains(visible, e.Project) {
				out.Items = append(out.Items, shownEvent(e, name))
			}
		}
		if len(page) < waitPage || len(out.Items) > 0 {
			return nil
		}
	}
}
