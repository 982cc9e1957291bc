package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/store"
)

// approvalStates are the filters of a list of approvals.
var approvalStates = map[string]approval.State{"": approval.Open, "all": "", "pending": approval.Open, "approved": approval.Approved,
	"denied": approval.Refused, "expired": approval.Expired, "cancelled": approval.Cancelled}

// ListApprovals implements the operation of that name.
func (o *Handler) ListApprovals(ctx context.Context, by operation.Caller, q operations.ApprovalQuery) (operation.List[operations.Approval], error) {
	out := operation.List[operations.Approval]{Items: []operations.Approval{}}
	state, ok := approvalStates[q.State]
	if !ok {
		return out, operation.InvalidField("state", "there is no state %.40q; use pending, approved, denied, expired, cancelled or all", q.State)
	}
	most := operation.Limit(q.Limit, 50, 200)
	after, tasksOnly := strings.CutPrefix(q.Cursor, taskCursor)
	if !tasksOnly {
		if err := o.listCalls(ctx, by, q, state, most, &out); err != nil || out.Next != "" {
			return out, err
		}
	}
	if o.app.Work == nil || q.Session != "" || state != approval.Open && state != "" {
		return out, nil
	}
	if !tasksOnly {
		after = ""
	}
	room := most - len(out.Items)
	list, next, err := o.app.Work.Asking(ctx, by, after, max(room, 1))
	switch {
	case err != nil:
		return out, err
	case room > 0:
		if out.Items = append(out.Items, list...); next != "" {
			out.Next = taskCursor + next
		}
	case len(list) > 0:
		out.Next = taskCursor
	}
	return out, nil
}

// taskCursor is the prefix of cursors of a list of approvals after which only tasks remain.
const taskCursor = "task."

// listCalls lists the approvals of calls.
func (o *Handler) listCalls(ctx context.Context, by operation.Caller, q operations.ApprovalQuery, state approval.State, most int, out *operation.List[operations.Approval]) error {
	f := store.ApprovalList{State: state, Before: q.Cursor, Prefix: by.OwnPrefix(), Limit: most + 1}
	if q.Session != "" {
		row, err := o.Find(ctx, by, q.Session)
		if err != nil {
			return err
		}
		f.Thread, f.Prefix = row.ID, ""
	}
	// Expired approvals are ended first, so that nobody answers in vain.
	if _, err := o.Engine.Approvals(ctx, approval.Filter{State: approval.Open, Limit: 1}); err != nil {
		return err
	}
	found, err := o.app.DB.ApprovalsFor(ctx, f)
	if err != nil {
		return err
	}
	if len(found) == f.Limit {
		found = found[:f.Limit-1]
		out.Next = found[len(found)-1].ID
	}
	name := o.app.Names(ctx)
	for _, a := range found {
		out.Items = append(out.Items, o.approval(by, a, name))
	}
	return nil
}

// Approval returns an approval as a caller sees it.
func (o *Handler) Approval(ctx context.Context, by operation.Caller, a approval.Approval) operations.Approval {
	return o.approval(by, a, o.app.Names(ctx))
}

func (o *Handler) approval(by operation.Caller, a approval.Approval, name func(chat.Principal) string) operations.Approval {
	hide := o.app.Logs.Redactor()
	out := operations.Approval{
		ID: a.ID, Kind: operations.AsksCall, Session: a.Thread.Thread(), Thread: string(a.Thread), Agent: a.Thread.Agent(), Run: a.Run, CallID: a.Call.ID, Tool: a.Call.Name,
		ArgsJSON: hide.Text(string(a.Call.Args)), Dir: a.Dir, Preview: hide.Text(a.Preview), Risk: a.Risk, RiskWhy: hide.Text(a.RiskWhy), Rule: a.Rule, Reason: hide.Text(a.Reason),
		Again: hide.Text(a.Again), Unbound: hide.Text(approval.Unbound(a.Bound)), AskedBy: a.AskedBy.String(), Payer: a.Payer.String(), AskedAt: a.AskedAt, Deadline: a.Deadline,
		Who: cmp.Or(a.Who, approval.DefaultWho), State: string(a.State), AnsweredBy: a.AnsweredBy, AnsweredAt: a.AnsweredAt, Note: a.Note,
		AskedByName: name(a.AskedBy), PayerName: name(a.Payer), AnsweredByName: answeredBy(a, name), Actions: []string{},
	}
	if len(a.Bound) > 0 {
		out.Bound = hide.JSON(a.Bound)
	}
	for _, action := range a.Actions {
		out.Actions = append(out.Actions, hide.Text(action))
	}
	for _, f := range a.Fields {
		f.Label, f.Hint = hide.Text(f.Label), hide.Text(f.Hint)
		out.Fields = append(out.Fields, f)
	}
	for _, part := range a.Parts {
		part.Text, part.Why = hide.Text(part.Text), hide.Text(part.Why)
		out.Parts = append(out.Parts, part)
	}
	for _, v := range a.Votes {
		out.Votes = append(out.Votes, operations.Vote{By: v.By.String(), ByName: name(v.By), OK: v.OK, Note: v.Note, At: v.At})
	}
	if b, err := o.BareToolbox(); err == nil {
		out.Label = hide.Text(b.Label(a.Call.Name, a.Call.Args))
	}
	if a.State == approval.Open && by.May(operation.Approve) {
		_, err := approval.Weigh(a, by.Principal, true)
		out.MayAnswer = err == nil
	}
	return out
}

// answeredBy names those who answered an approval, by their names at that time.
func answeredBy(a approval.Approval, name func(chat.Principal) string) string {
	keys := strings.Split(a.AnsweredBy, approval.And)
	for i, key := range keys {
		who := chat.PrincipalOf(key)
		if at := slices.IndexFunc(a.Votes, func(v approval.Vote) bool { return v.By.String() == key }); at >= 0 {
			who = a.Votes[at].By
		}
		keys[i] = name(who)
	}
	return strings.Join(keys, approval.And)
}

// AnswerApproval implements the operation of that name.
func (o *Handler) AnswerApproval(ctx context.Context, by operation.Caller, in operations.Answer) (operations.Approval, error) {
	a, err := o.findApproval(ctx, by, in.ID)
	if asked, is, terr := o.taskApproval(ctx, by, in.ID, err); is {
		if terr != nil {
			return operations.Approval{}, terr
		}
		return o.answerTask(ctx, by, in, asked)
	}
	if err != nil {
		return operations.Approval{}, err
	}
	if in.Approved && a.State == approval.Open && len(a.Fields) > 0 {
		if _, err := approval.ReadAnswer(a.Fields, in.Note); err != nil {
			return operations.Approval{}, &operation.Error{Kind: operation.Invalid, Message: err.Error(), Err: err}
		}
	}
	if len(in.Always) > 0 && in.Approved {
		err = o.app.Gate.Keep(ctx, a.ID, by.Principal, in.Always)
	} else {
		err = o.Engine.Answer(ctx, a.ID, by.Principal, in.Approved, in.Note)
	}
	now, rerr := o.app.DB.Approval(ctx, a.ID)
	switch {
	case errors.Is(err, journal.ErrSettled) && rerr == nil:
		shown := o.Approval(ctx, by, now)
		now.AnsweredBy = shown.AnsweredByName
		return operations.Approval{}, &operation.Error{Kind: operation.Conflict, Message: "too late: " + now.Ended(), About: shown, Err: err}
	case err != nil:
		return operations.Approval{}, err
	case rerr != nil:
		return operations.Approval{}, rerr
	}
	return o.Approval(ctx, by, now), nil
}

// GetApproval implements the operation of that name.
func (o *Handler) GetApproval(ctx context.Context, by operation.Caller, in operations.ApprovalRef) (operations.Approval, error) {
	a, err := o.findApproval(ctx, by, in.ID)
	if asked, is, terr := o.taskApproval(ctx, by, in.ID, err); is {
		return asked, terr
	}
	if err != nil {
		return operations.Approval{}, err
	}
	return o.Approval(ctx, by, a), nil
}

// taskApproval returns the approval of a task, if no call's approval has the id; false: the caller has no such task either.
func (o *Handler) taskApproval(ctx context.Context, by operation.Caller, id string, inVain error) (operations.Approval, bool, error) {
	if no := (*operation.Error)(nil); o.app.Work == nil || id == "" || !errors.As(inVain, &no) || no.Kind != operation.NotFound {
		return operations.Approval{}, false, nil
	}
	q, err := o.app.Work.TaskApproval(ctx, by, id)
	if no := (*operation.Error)(nil); errors.As(err, &no) && no.Kind == operation.NotFound {
		return q, false, nil
	}
	return q, true, err
}

// answerTask answers a task's approval through the operation on the task, so that the same rights apply.
func (o *Handler) answerTask(ctx context.Context, by operation.Caller, in operations.Answer, q operations.Approval) (operations.Approval, error) {
	note := strings.TrimSpace(in.Note)
	switch {
	case len(in.Always) > 0:
		return q, operation.InvalidField("always", "rules apply to calls of agents; the result of task %s is answered once", q.Task)
	case !in.Approved && note == "":
		return q, operation.InvalidField("note", "rejecting the result of task %s needs a note: its worker starts again and is told what should change", q.Task)
	}
	var err error
	switch to := o.Operations(); {
	case in.Approved:
		_, err = operations.ApproveTask.Call(ctx, to, by, operations.TaskRef{ID: q.Task})
		q.State = string(approval.Approved)
	case q.Kind == operations.AsksPlan:
		_, err = operations.RejectPlan.Call(ctx, to, by, operations.TaskFeedback{ID: q.Task, Feedback: note})
		q.State = string(approval.Refused)
	default:
		_, err = operations.ReopenTask.Call(ctx, to, by, operations.TaskFeedback{ID: q.Task, Feedback: note})
		q.State = string(approval.Refused)
	}
	q.MayAnswer, q.AnsweredBy, q.AnsweredByName, q.AnsweredAt, q.Note = false, by.Principal.String(), o.app.Names(ctx)(by.Principal), o.app.Now(), note
	return q, err
}

// AnswerCall implements the operation of that name.
func (o *Handler) AnswerCall(ctx context.Context, by operation.Caller, in operations.CallAnswer) (operations.Approval, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Approval{}, err
	}
	found, err := o.app.DB.ApprovalsFor(ctx, store.ApprovalList{Thread: row.ID, Call: in.CallID, Limit: 50})
	if err != nil {
		return operations.Approval{}, err
	}
	answer := operations.Answer{ID: in.CallID, Approved: in.Approved, Note: in.Note}
	switch at := slices.IndexFunc(found, func(a approval.Approval) bool { return a.State == approval.Open }); {
	case at >= 0:
		answer.ID = found[at].ID
	case len(found) > 0:
		answer.ID = found[0].ID
	default:
		if a, err := o.app.DB.Approval(ctx, in.CallID); err != nil || a.Thread != row.ID {
			return operations.Approval{}, operation.Errorf(operation.NotFound, "this session has no approval for the call %.80q", in.CallID)
		}
	}
	return o.AnswerApproval(ctx, by, answer)
}

// findApproval finds an approval of a session that the caller may see, by its id or the call's. Call ids come from the
// model and are not unique: it returns the pending approval, else the newest.
func (o *Handler) findApproval(ctx context.Context, by operation.Caller, id string) (approval.Approval, error) {
	none := operation.Errorf(operation.NotFound, "there is no approval %.80q", id)
	a, err := o.app.DB.Approval(ctx, id)
	if err == nil {
		if !o.SeesThread(ctx, by, a.Thread) {
			return a, none
		}
		return a, nil
	}
	if !errors.Is(err, journal.ErrUnknown) {
		return a, err
	}
	if id == "" {
		return a, none
	}
	found, err := o.app.DB.ApprovalsFor(ctx, store.ApprovalList{Call: id, Prefix: by.OwnPrefix(), Limit: 50})
	if err != nil {
		return a, err
	}
	var open []approval.Approval
	for _, x := range found {
		if x.State == approval.Open {
			open = append(open, x)
		}
	}
	switch {
	case len(open) == 1:
		return open[0], nil
	case len(open) > 1:
		return a, operation.Errorf(operation.Conflict, "%d approvals are pending for a call %.80q; answer by the approval's own id", len(open), id)
	case len(found) > 0:
		return found[0], nil
	default:
		return a, none
	}
}

func (o *Handler) SeesThread(ctx context.Context, by operation.Caller, thread chat.ThreadID) bool {
	if by.May(operation.Admin) {
		return true
	}
	row, err := o.app.DB.Thread(ctx, thread)
	return err == nil && by.Sees(row.ID, row.Owner)
}
