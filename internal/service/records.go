package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/checkpoint"
	"chorus/internal/ledger"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/room/threadname"
	"chorus/internal/runsetup"
	"chorus/internal/store"
	"chorus/internal/store/audit"
	"chorus/internal/store/search"
)

// costWords are the names in the API for grouping costs.
var costWords = map[string]store.SpendBy{"": store.ByModel, "agent": store.ByAgent, "model": store.ByModel, "person": store.ByPayer,
	"channel": store.ByChannel, "day": store.ByDay, "month": store.ByMonth, "session": store.ByThread, "thread": store.ByThread, "run": store.ByRun}

// maxCosts is how many rows are shown; the total includes all of them.
const maxCosts = 1000

// Costs implements the operation of that name. Without the scope admin, callers see what they paid themselves.
func (o *Handler) Costs(ctx context.Context, by operation.Caller, q operations.CostQuery) (operations.Costs, error) {
	now := time.Now().UTC()
	group, ok := costWords[q.By]
	if !ok {
		return operations.Costs{}, operation.InvalidField("by", "costs cannot be grouped by %.40q; use model, agent, person, channel, day, month, session, thread or run", q.By)
	}
	since, err := CostSince(q.Since, now)
	if err != nil {
		return operations.Costs{}, operation.InvalidField("since", "%v", err)
	}
	out := operations.Costs{By: cmp.Or(q.By, "model"), Since: since, Rows: []operations.Cost{}, Budgets: []operations.Budget{}}
	f := store.SpendFilter{By: group, Since: since, Under: q.Under}
	if !by.May(operation.Admin) {
		f.Payer = by.Principal.String()
	}
	sums, err := o.app.DB.Spend(ctx, f)
	if err != nil {
		return out, err
	}
	if group == store.ByDay || group == store.ByMonth {
		slices.SortFunc(sums, func(x, y store.Sum) int { return cmp.Compare(x.Key, y.Key) })
	}
	var total ledger.Nanos
	for _, s := range sums {
		total += s.Settled
		if len(out.Rows) < maxCosts {
			out.Rows = append(out.Rows, o.cost(q.By, group, s))
		}
	}
	out.Total = ledger.USD(total)
	out.Budgets, err = o.Budgets(ctx, by, now)
	return out, err
}

func (o *Handler) cost(word string, by store.SpendBy, s store.Sum) operations.Cost {
	c := operations.Cost{Key: s.Key, Dollars: ledger.USD(s.Settled), Reserved: ledger.USD(s.Open), Calls: s.Calls, InputTokens: s.Usage.Input, OutputTokens: s.Usage.Output,
		CacheReadTokens: s.Usage.CacheRead, CacheWriteTokens: s.Usage.CacheWrite}
	switch {
	case word == "session":
		c.Key = chat.ThreadID(s.Key).Thread()
	case by == store.ByModel:
		if price, _ := runsetup.PriceOf(o.app.Models, o.app.Shared)(s.Key); !price.Known() && !price.Free {
			c.Unpriced = s.Calls
		}
	}
	return c
}

// Budgets returns all budgets for an admin, and for others those that they spend from.
func (o *Handler) Budgets(ctx context.Context, by operation.Caller, now time.Time) ([]operations.Budget, error) {
	used, err := o.app.BudgetsUsed(ctx, now)
	out := []operations.Budget{}
	for _, b := range used {
		if b.Subject != "" && !by.May(operation.Admin) && b.Subject != by.Principal.String() {
			continue
		}
		name := b.Key
		if b.Subject != "" {
			name += " " + b.Subject
		}
		out = append(out, operations.Budget{Name: name, Per: b.Period, Soft: b.Most * o.app.Shared.BudgetSoft, Hard: b.Most, Spent: b.Spent + b.Reserved, Reserved: b.Reserved})
	}
	return out, err
}

// Audit implements the operation of that name. Without the scope admin, callers see the decisions about their own
// sessions, one session at a time.
func (o *Handler) Audit(ctx context.Context, by operation.Caller, q operations.AuditQuery) (operation.List[operations.AuditLine], error) {
	out := operation.List[operations.AuditLine]{Items: []operations.AuditLine{}}
	f := audit.Filter{Agent: q.Agent, Principal: q.Who, Decision: q.Decision, Run: q.Run, Since: q.Since, Until: q.Until,
		Before: max(0, q.Before), Limit: operation.Limit(q.Limit, 100, 500) + 1}
	switch {
	case q.Session != "":
		row, err := o.Find(ctx, by, q.Session)
		if err != nil {
			return out, err
		}
		f.Thread = row.ID
	case !by.May(operation.Admin):
		return out, operation.Errorf(operation.Forbidden, "the whole audit log needs the scope admin; name one of your sessions")
	}
	if q.Cursor != "" {
		before, err := strconv.ParseInt(q.Cursor, 10, 64)
		if err != nil || before < 1 {
			return out, operation.InvalidField("cursor", "the cursor %.40q is not from this list", q.Cursor)
		}
		f.Before = before
	}
	lines, err := o.app.DB.AuditLog(ctx, f)
	if err != nil {
		return out, err
	}
	if len(lines) == f.Limit {
		lines = lines[:f.Limit-1]
		out.Next = strconv.FormatInt(lines[len(lines)-1].ID, 10)
	}
	hide, name := o.app.Logs.Redactor(), o.app.Names(ctx)
	for _, l := range lines {
		line := operations.AuditLine{Seq: l.ID, At: l.At, Who: l.Principal.String(), WhoName: name(l.Principal), Agent: l.Agent, Run: l.Run, Call: l.Call,
			Action: hide.Text(l.Action), Decision: l.Decision, Rule: l.Rule, Detail: hide.Text(l.Detail), Thread: string(l.Thread), Hash: l.Hash}
		line.Words = auditWords(line, name)
		if l.Thread != "" {
			line.Session = l.Thread.Thread()
		}
		out.Items = append(out.Items, line)
	}
	return out, nil
}

// VerifyAudit implements the operation of that name.
func (o *Handler) VerifyAudit(ctx context.Context, _ operation.Caller, in operations.VerifyRequest) (operations.AuditCheck, error) {
	c, err := o.app.DB.VerifyAudit(ctx, in.Since, operation.ProgressOf(ctx))
	if err != nil {
		return operations.AuditCheck{}, err
	}
	if c.Break == nil {
		// The log itself cannot show whether all of it was rewritten. Whoever finds it intact seals it and keeps its head.
		if _, err := o.app.Settings.Checkpoints(o.app.Shared).Keep(ctx, o.app.DB); err != nil {
			var broken *checkpoint.Broken
			if !errors.As(err, &broken) {
				return operations.AuditCheck{}, err
			}
			c.Break = &audit.Break{ID: broken.Line, Seal: broken.Seal, What: audit.LineChanged, Text: broken.Text}
			if broken.Gone {
				c.Break.What = audit.LineRemoved
			}
		}
	}
	if c.Break == nil {
		if c.HeadID, c.Head, err = o.app.DB.SealAudit(ctx); err != nil {
			return operations.AuditCheck{}, err
		}
	}
	out := operations.AuditCheck{OK: c.Break == nil, Lines: c.Lines, Chains: c.Chains, Before: c.Before, Head: c.Head, HeadSeal: c.HeadID}
	if b := c.Break; b != nil {
		out.Problem = fmt.Sprintf("%s: %s", b.What, b.Text)
		out.Break = &operations.AuditBreak{Thread: string(b.Thread), Line: b.ID, Seal: b.Seal, What: string(b.What), Text: b.Text}
	}
	return out, nil
}

// Matches in a snippet are enclosed in these characters.
const (
	MarkStart = "\x01"
	MarkEnd   = "\x02"
)

// Snippet removes secrets from a match. If the search marks would hide a secret, it drops the marks.
func (s *Service) Snippet(found string) string {
	plain := strings.NewReplacer(MarkStart, "", MarkEnd, "").Replace(found)
	if hidden := s.Logs.Redactor().Text(plain); hidden != plain {
		return hidden
	}
	return found
}

// Search implements the operation of that name.
func (o *Handler) Search(ctx context.Context, by operation.Caller, q operations.SearchQuery) (operation.List[operations.Hit], error) {
	out := operation.List[operations.Hit]{Items: []operations.Hit{}}
	if q.Text == "" {
		return out, operation.InvalidField("q", "say what to search for")
	}
	skip := 0
	if q.Cursor != "" {
		var err error
		if skip, err = strconv.Atoi(q.Cursor); err != nil || skip < 0 || skip > maxSkip {
			return out, operation.InvalidField("cursor", "the cursor %.40q is not from this list", q.Cursor)
		}
	}
	if _, err := o.app.DB.IndexNew(ctx); err != nil {
		return out, err
	}
	n := operation.Limit(q.Limit, 20, 100)
	hits, err := o.app.DB.Search(ctx, q.Text, search.Options{Agent: q.Agent, Prefix: by.OwnPrefix(), Limit: n + 1, Skip: skip, MarkStart: MarkStart, MarkEnd: MarkEnd})
	if err != nil {
		return out, err
	}
	if len(hits) > n && skip+n <= maxSkip {
		out.Next = strconv.Itoa(skip + n)
	}
	hits = hits[:min(len(hits), n)]
	titles := map[chat.ThreadID]string{}
	hide := o.app.Logs.Redactor()
	for _, h := range hits {
		title, ok := titles[h.Thread]
		if !ok {
			row, err := o.app.DB.Thread(ctx, h.Thread)
			if err != nil {
				continue // it was just removed
			}
			if row.Gone() {
				continue
			}
			title = threadname.Plain(hide.Clipped(row.Title))
			titles[h.Thread] = title
		}
		out.Items = append(out.Items, operations.Hit{Session: h.Thread.Thread(), Title: title, Agent: h.Thread.Agent(), Seq: h.Seq, At: h.At, Who: h.Who, Snippet: o.app.Snippet(h.Snippet)})
	}
	return out, nil
}

// maxSkip limits how far people can page through matches.
const maxSkip = 10000
