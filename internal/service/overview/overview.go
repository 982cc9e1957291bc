// Package overview implements the operation that shows what is going on: running sessions, pending approvals, agents, costs and nodes.
package overview

import (
	"context"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/service"
	"chorus/internal/service/agents"
	"chorus/internal/store"
)

// Handler implements the operation.
type Handler struct {
	app      *service.Service
	sessions *service.Handler
	agents   *agents.Handler
}

// New returns a handler that uses one handler for sessions, approvals and costs and another for agents.
func New(app *service.Service, sessions *service.Handler, agents *agents.Handler) *Handler {
	return &Handler{app, sessions, agents}
}

var _ operations.Overviews = (*Handler)(nil)

// Overview implements the operation of that name.
func (o *Handler) Overview(ctx context.Context, by operation.Caller, _ operation.None) (operations.Overview, error) {
	out := operations.Overview{Version: o.app.Version, StartedAt: o.sessions.Began(), Agents: []operations.AgentStat{}, Budgets: []operations.Budget{}}
	own := o.sessions.Defaults("")
	out.Model, out.Sandbox = own.Model, own.Sandbox
	for _, step := range []func(context.Context, operation.Caller, *operations.Overview) error{o.addSessions, o.addApprovals, o.addAgents, o.addCosts, o.addNodes} {
		if err := step(ctx, by, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// addNodes lists the processes that share the database, if there can be several, for callers who may see everything.
func (o *Handler) addNodes(ctx context.Context, by operation.Caller, out *operations.Overview) (err error) {
	if o.app.Nodes != nil && by.May(operation.Admin) {
		out.Nodes, err = o.app.Nodes(ctx)
	}
	return err
}

// Limits of an overview.
const (
	maxShown    = 10
	maxAgents   = 200
	maxLooked   = 200
	failedSince = 24 * time.Hour
)

// addSessions sorts the most recent sessions into running, failed and others.
func (o *Handler) addSessions(ctx context.Context, by operation.Caller, out *operations.Overview) error {
	f := store.ThreadFilter{Limit: maxLooked}
	if !by.May(operation.Admin) {
		f.Transport, f.Place = "web", by.Principal.OwnPlace()
	}
	rows, err := o.app.DB.Threads(ctx, f)
	if err != nil {
		return err
	}
	active, err := o.app.DB.ActiveThreads(ctx) // running ones, however long ago they changed
	if err != nil {
		return err
	}
	known := map[chat.ThreadID]bool{}
	for _, row := range rows {
		known[row.ID] = true
	}
	for _, row := range active {
		if row.Status == chat.Running && !known[row.ID] && by.Sees(row.ID, row.Owner) && len(rows) < 2*maxLooked {
			rows = append(rows, row)
		}
	}
	shown, err := o.worthShowing(ctx, rows)
	if err != nil {
		return err
	}
	views, err := o.sessions.Views(ctx, shown)
	if err != nil {
		return err
	}
	out.Running, out.Failed, out.Recent = []operations.Session{}, []operations.Session{}, []operations.Session{}
	waiting, err := o.sessions.ListSessions(ctx, by, operations.SessionQuery{Status: "queued", Limit: maxShown})
	if err != nil {
		return err
	}
	out.Queued = waiting.Items
	for _, s := range views {
		switch {
		case s.Status == "running":
			out.Running = append(out.Running, s)
		case failedEnd(chat.Reason(s.LastOutcome)) && time.Since(s.MovedAt) < failedSince && len(out.Failed) < maxShown:
			out.Failed = append(out.Failed, s)
		}
		if len(out.Recent) < maxShown {
			out.Recent = append(out.Recent, s)
		}
	}
	return nil
}

// worthShowing returns the rows that fit into an overview. Only for these are the totals of all runs read, because a
// session that is years old has many.
func (o *Handler) worthShowing(ctx context.Context, rows []journal.Thread) ([]journal.Thread, error) {
	ids := make([]chat.ThreadID, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	ends, err := o.app.DB.LastEnds(ctx, ids)
	if err != nil {
		return nil, err
	}
	var out []journal.Thread
	failures := 0
	for i, row := range rows {
		running := row.Status == chat.Running || row.Status == chat.Delegated
		failed := !running && failures < maxShown && failedEnd(ends[row.ID].Reason) && time.Since(row.LastActive) < failedSince
		if failed {
			failures++
		}
		if running || failed || i < maxShown {
			out = append(out, row)
		}
	}
	return out, nil
}

func failedEnd(reason chat.Reason) bool { return reason == chat.EndFailed || reason == chat.EndBudget }

func (o *Handler) addApprovals(ctx context.Context, by operation.Caller, out *operations.Overview) error {
	list, err := o.sessions.ListApprovals(ctx, by, operations.ApprovalQuery{Limit: maxShown})
	out.Waiting = list.Items
	return err
}

func (o *Handler) addAgents(ctx context.Context, by operation.Caller, out *operations.Overview) error {
	list, err := o.agents.ListAgents(ctx, by, operations.AgentQuery{Page: operations.Page{Limit: maxAgents}})
	if err != nil || !by.May(operation.Admin) {
		for _, a := range list.Items {
			out.Agents = append(out.Agents, operations.AgentStat{Agent: a})
		}
		return err
	}
	counts, err := o.app.DB.AgentCounts(ctx)
	for _, a := range list.Items {
		c := counts[a.Name]
		out.Agents = append(out.Agents, operations.AgentStat{Agent: a, Threads: c.Threads, Running: c.Running, Waiting: c.Waiting})
	}
	return err
}

func (o *Handler) addCosts(ctx context.Context, by operation.Caller, out *operations.Overview) error {
	now := time.Now().UTC()
	f := store.SpendFilter{Since: ledger.Month.Begin(now)}
	if !by.May(operation.Admin) {
		f.Payer = by.Principal.String()
	}
	for _, into := range []*float64{&out.Month, &out.Today} {
		sums, err := o.app.DB.Spend(ctx, f)
		if err != nil {
			return err
		}
		for _, s := range sums {
			*into = ledger.USD(s.Settled)
		}
		f.Since = ledger.Day.Begin(now)
	}
	var err error
	out.Budgets, err = o.sessions.Budgets(ctx, by, now)
	return err
}
