package api

import (
	"context"

	"chorus/internal/command"
	"chorus/internal/transport/http/rest"
)

// Verdict is the body that answers an approval.
type Verdict struct {
	Approved bool   `json:"approved"`
	Note     string `json:"note,omitempty" maxLen:"4000" doc:"for the model and the record"`
}

func (a *API) deskOps() []rest.Operation {
	const tag = "approvals"
	settled := []int{404, 409}
	return []rest.Operation{
		rest.Op(rest.Route{Method: "GET", Path: "/api/approvals", ID: "listApprovals", Tag: tag, Scope: readScope, Errors: []int{404},
			Summary: "List what waits for a yes"}, a.listApprovals),
		rest.Op(rest.Route{Method: "POST", Path: "/api/approvals/{id}", ID: "answerApproval", Tag: tag, Scope: approveScope, Errors: settled,
			Summary: "Answer an approval", Doc: "One that is answered already is a conflict, and about says how it was answered."},
			func(ctx context.Context, in struct {
				ID   string `path:"id" maxLen:"200" doc:"the approval's id"`
				Body Verdict
			}) (command.Approval, error) {
				return a.service.Answer(ctx, by(ctx), in.ID, command.Verdict(in.Body))
			}),
		rest.Op(rest.Route{Method: "GET", Path: "/api/sessions/{id}/approvals", ID: "sessionApprovals", Tag: tag, Scope: readScope, Errors: []int{404},
			Summary: "List what waits for a yes in a session"}, a.sessionApprovals),
		rest.Op(rest.Route{Method: "POST", Path: "/api/sessions/{id}/approvals/{callId}", ID: "answerCall", Tag: tag, Scope: approveScope, Errors: settled,
			Summary: "Answer the approval of a call"}, a.answerCall),
	}
}

type whichApprovals struct {
	State  string `query:"state" enum:"pending,approved,denied,expired,cancelled,all" doc:"left out: pending"`
	Cursor string `query:"cursor" maxLen:"1024" doc:"next of the page before"`
	Limit  int    `query:"limit" min:"1" max:"200"`
}

func (a *API) listApprovals(ctx context.Context, in struct {
	Session string `query:"session" maxLen:"1024"`
	State   string `query:"state" enum:"pending,approved,denied,expired,cancelled,all" doc:"left out: pending"`
	Cursor  string `query:"cursor" maxLen:"1024" doc:"next of the page before"`
	Limit   int    `query:"limit" min:"1" max:"200"`
}) (command.List[command.Approval], error) {
	return a.approvals(ctx, in.Session, whichApprovals{in.State, in.Cursor, in.Limit})
}

func (a *API) sessionApprovals(ctx context.Context, in struct {
	ID     string `path:"id" maxLen:"1024" doc:"the session's id"`
	State  string `query:"state" enum:"pending,approved,denied,expired,cancelled,all" doc:"left out: pending"`
	Cursor string `query:"cursor" maxLen:"1024" doc:"next of the page before"`
	Limit  int    `query:"limit" min:"1" max:"200"`
}) (command.List[command.Approval], error) {
	return a.approvals(ctx, in.ID, whichApprovals{in.State, in.Cursor, in.Limit})
}

func (a *API) approvals(ctx context.Context, session string, which whichApprovals) (command.List[command.Approval], error) {
	return paged(which.Cursor, func(cursor string) (command.List[command.Approval], error) {
		return a.service.Approvals(ctx, by(ctx), command.ApprovalQuery{Session: session, State: which.State, Cursor: cursor, Limit: which.Limit})
	})
}

// answerCall answers by the call's id, which is good only within its session: models
// call their calls the same in every one.
func (a *API) answerCall(ctx context.Context, in struct {
	ID     string `path:"id" maxLen:"1024" doc:"the session's id"`
	CallID string `path:"callId" maxLen:"512" doc:"the call's id, or the approval's"`
	Body   Verdict
}) (command.Approval, error) {
	for _, state := range []string{"pending", "all"} {
		approval, found, err := a.findApproval(ctx, in.ID, in.CallID, state)
		if err != nil {
			return command.Approval{}, err
		}
		if found {
			return a.service.Answer(ctx, by(ctx), approval.ID, command.Verdict(in.Body))
		}
	}
	return command.Approval{}, command.Errorf(command.NotFound, "no call %.80q of this session was ever asked about", in.CallID)
}

func (a *API) findApproval(ctx context.Context, session, call, state string) (command.Approval, bool, error) {
	q := command.ApprovalQuery{Session: session, State: state, Limit: 200}
	for {
		page, err := a.service.Approvals(ctx, by(ctx), q)
		if err != nil {
			return command.Approval{}, false, err
		}
		for _, approval := range page.Items {
			if approval.CallID == call || approval.ID == call {
				return approval, true, nil
			}
		}
		if page.Next == "" || page.Next == q.Cursor {
			return command.Approval{}, false, nil
		}
		q.Cursor = page.Next
	}
}
