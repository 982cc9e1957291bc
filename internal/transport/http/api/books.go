package api

import (
	"context"

	"chorus/internal/command"
	"chorus/internal/transport/http/rest"
)

func (a *API) bookOps() []rest.Operation {
	const tag = "books"
	return []rest.Operation{
		rest.Op(rest.Route{Method: "GET", Path: "/api/costs", ID: "costs", Tag: tag, Scope: readScope, Summary: "Sum what was spent"},
			func(ctx context.Context, in struct {
				By    string `query:"by" enum:"agent,model,person,channel,day,session,run"`
				Since string `query:"since" maxLen:"40" doc:"24h, 7d, 2026-01-31 or month"`
			}) (command.Costs, error) {
				return a.service.Costs(ctx, by(ctx), command.CostQuery{By: in.By, Since: in.Since})
			}),
		rest.Op(rest.Route{Method: "GET", Path: "/api/audit", ID: "audit", Tag: tag, Scope: readScope, Errors: []int{404},
			Summary: "List who was allowed what and why"}, a.audit),
		rest.Op(rest.Route{Method: "GET", Path: "/api/audit/verify", ID: "verifyAudit", Tag: tag, Scope: adminScope,
			Summary: "Check that nothing of the audit log was changed or lost"}, func(ctx context.Context, _ struct{}) (command.AuditCheck, error) {
			return a.service.VerifyAudit(ctx, by(ctx))
		}),
	}
}

func (a *API) audit(ctx context.Context, in struct {
	Session  string `query:"session" maxLen:"1024"`
	Agent    string `query:"agent" maxLen:"64"`
	Who      string `query:"who" maxLen:"200"`
	Decision string `query:"decision" maxLen:"64"`
	Cursor   string `query:"cursor" maxLen:"1024" doc:"next of the page before"`
	Limit    int    `query:"limit" min:"1" max:"500"`
}) (command.List[command.AuditLine], error) {
	return paged(in.Cursor, func(cursor string) (command.List[command.AuditLine], error) {
		return a.service.Audit(ctx, by(ctx), command.AuditQuery{Session: in.Session, Agent: in.Agent, Who: in.Who,
			Decision: in.Decision, Cursor: cursor, Limit: in.Limit})
	})
}
