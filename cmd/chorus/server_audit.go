package main

import (
	"context"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/store"
)

// farAudit lists decisions of a server.
func (c *cli) farAudit(ctx context.Context, f store.AuditFilter, thread string) error {
	return c.at(func(service command.Service) error {
		q := command.AuditQuery{Agent: f.Agent, Who: f.Principal, Decision: f.Decision, Run: f.Run, Since: f.Since, Until: f.Until, Before: f.Before,
			Limit: f.Limit + 1} // one more tells whether there are older ones
		if thread != "" {
			s, err := farSession(ctx, service, thread)
			if err != nil {
				return err
			}
			q.Session = s.ID
		}
		lines, err := whole(q.Limit, func(cursor string) (command.List[command.AuditLine], error) {
			q.Cursor = cursor
			return service.Audit(ctx, command.Caller{}, q)
		})
		if err != nil {
			return err
		}
		page := auditPageJSON{Lines: []auditJSON{}}
		for i, l := range lines {
			if i == f.Limit {
				page.Next = page.Lines[i-1].ID
				break
			}
			kind, id, _ := strings.Cut(l.Who, ":")
			page.Lines = append(page.Lines, auditJSON{ID: l.Seq, At: l.At, Agent: l.Agent, Thread: chat.ThreadID(l.Thread), Run: l.Run, Call: l.Call, Action: l.Action,
				Decision: l.Decision, Rule: l.Rule, Detail: l.Detail, Hash: l.Hash, Principal: chat.Principal{Kind: chat.PrincipalKind(kind), ID: id}})
		}
		return c.tellAudit(page)
	})
}

// farVerify has a server look at its own audit log.
func (c *cli) farVerify(ctx context.Context, since string) error {
	return c.at(func(service command.Service) error {
		check, err := service.VerifyAudit(ctx, command.Caller{}, since)
		if err != nil {
			return err
		}
		found := store.AuditCheck{Lines: check.Lines, Before: check.Before, Head: check.Head, HeadID: check.HeadLine}
		if b := check.Break; b != nil {
			found.Break = &store.AuditBreak{ID: b.Line, What: store.Damage(b.What), Text: b.Text}
		}
		return c.tellVerified(found)
	})
}
