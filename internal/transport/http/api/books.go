package api

import (
	"context"
	"time"

	"chorus/internal/command"
	"chorus/internal/transport/http/rest"
)

func (a *API) bookOps() []rest.Operation {
	const tag = "books"
	return []rest.Operation{
		rest.Op(rest.Route{Method: "GET", Path: "/api/costs", ID: "costs", Tag: tag, Scope: readScope, Summary: "Sum what was spent"},
			func(ctx context.Context, in struct {
				By    string `query:"by" enum:"agent,model,person,channel,day,month,session,run"`
				Since string `query:"since" maxLen:"40" doc:"24h, 7d, 2026-01-31 or month"`
			}) (command.Costs, error) {
				return a.service.Costs(ctx, by(ctx), command.CostQuery{By: in.By, Since: in.Since})
			}),
		rest.Op(rest.Route{Method: "GET", Path: "/api/audit", ID: "audit", Tag: tag, Scope: readScope, Errors: []int{404},
			Summary: "List who was allowed what and why"}, a.audit),
		rest.Op(rest.Route{Method: "GET", Path: "/api/audit/verify", ID: "verifyAudit", Tag: tag, Scope: adminScope,
			Summary: "Check that nothing of the audit log was changed or lost"}, func(ctx context.Context, in struct {
			Since string `query:"since" maxLen:"128" doc:"begin at the line with this hash: a head that was kept"`
		}) (command.AuditCheck, error) {
			return a.service.VerifyAudit(ctx, by(ctx), in.Since)
		}),
	}
}

func (a *API) audit(ctx context.Context, in struct {
	Session  string `query:"session" maxLen:"1024"`
	Agent    string `query:"agent" maxLen:"64"`
	Who      string `query:"who" maxLen:"200"`
	Decision string `query:"decision" maxLen:"64"`
	Run      string `query:"run" maxLen:"64"`
	Since    string `query:"since" maxLen:"40" doc:"not older than this moment, as RFC 3339 has it"`
	Until    string `query:"until" maxLen:"40" doc:"older than this moment"`
	Before   int64  `query:"before" min:"0" max:"9007199254740991" doc:"only lines with a smaller number"`
	Cursor   string `query:"cursor" maxLen:"1024" doc:"next of the page before"`
	Limit    int    `query:"limit" min:"1" max:"500"`
}) (command.List[command.AuditLine], error) {
	since, err := moment("since", in.Since)
	if err != nil {
		return command.List[command.AuditLine]{}, err
	}
	until, err := moment("until", in.Until)
	if err != nil {
		return command.List[command.AuditLine]{}, err
	}
	return paged(in.Cursor, func(cursor string) (command.List[command.AuditLine], error) {
		return a.service.Audit(ctx, by(ctx), command.AuditQuery{Session: in.Session, Agent: in.Agent, Who: in.Who, Decision: in.Decision,
			Run: in.Run, Since: since, Until: until, Before: in.Before, Cursor: cursor, Limit: in.Limit})
	})
}

// moment reads a time of a query; "" is none.
func moment(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		wrong := command.Errorf(command.Invalid, "%s is no time; write it as 2026-01-31T15:04:05Z", field)
		wrong.Field = field
		return t, wrong
	}
	return t, nil
}
