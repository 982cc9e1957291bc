package operations

import (
	"context"
	"encoding/json"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
)

// Approvals implements operations on approvals.
type Approvals interface {
	ListApprovals(context.Context, operation.Caller, ApprovalQuery) (operation.List[Approval], error)
	GetApproval(context.Context, operation.Caller, ApprovalRef) (Approval, error)
	// AnswerApproval answers by the approval's id or the call's.
	AnswerApproval(context.Context, operation.Caller, Answer) (Approval, error)
	// AnswerCall answers by the call's id within a session, because models use the same ids in every session.
	AnswerCall(context.Context, operation.Caller, CallAnswer) (Approval, error)
}

// ApprovalQuery filters a list of approvals.
type ApprovalQuery struct {
	Session string `json:"session,omitempty" maxLen:"1024" noun:"session" doc:"only this session's"`
	State   string `json:"state,omitempty" enum:"pending,approved,denied,expired,cancelled,all" doc:"left out: pending"`
	Cursor  string `json:"cursor,omitempty" maxLen:"1024" cli:"-" slash:"-" doc:"next of the page before"`
	Limit   int    `json:"limit,omitempty" min:"1" max:"200"`
}

// ApprovalRef names an approval.
type ApprovalRef struct {
	ID string `json:"id" maxLen:"200" noun:"approval" doc:"the approval's id, or the call's"`
}

// The kinds of approvals.
const (
	AsksCall   = "call"         // an agent wants to call a tool
	AsksResult = "task_result"  // a task is done and should be merged
	AsksPull   = "pull_request" // likewise, or its pull request should be merged
	AsksPlan   = "task_plan"    // a task has a plan whose steps should become tasks
)

// Approval is a pending or answered approval with everything a person needs to decide.
type Approval struct {
	ID             string            `json:"id"`
	Kind           string            `json:"kind"`             // call, task_result, pull_request or task_plan
	Task           string            `json:"taskId,omitempty"` // the task, whose id is also the approval's
	Project        string            `json:"projectId,omitempty"`
	Answer         string            `json:"answer,omitempty"` // what approving and denying do
	Session        string            `json:"session"`
	Thread         string            `json:"thread,omitempty"` // the session's full name
	Agent          string            `json:"agent"`
	Run            string            `json:"run"`
	CallID         string            `json:"callId"`
	Tool           string            `json:"tool"`
	ArgsJSON       string            `json:"argsJson"`
	Label          string            `json:"label,omitempty"`
	Actions        []string          `json:"actions"`
	Dir            string            `json:"dir,omitempty"`
	Preview        string            `json:"preview,omitempty"`
	Risk           string            `json:"risk,omitempty"`    // low, medium or high
	RiskWhy        string            `json:"riskWhy,omitempty"` // one sentence
	Parts          []chat.JudgedPart `json:"parts,omitempty"`   // what it would do, with the rules' verdict on each part
	Rule           string            `json:"rule,omitempty"`
	Reason         string            `json:"reason,omitempty"`
	Again          string            `json:"again,omitempty"`
	Unbound        string            `json:"unbound,omitempty"` // parts of the call that the approval does not cover
	Fields         []chat.Field      `json:"fields,omitempty"`  // the values that a question asks for; the note of the answer has them
	AskedBy        string            `json:"askedBy"`
	AskedByName    string            `json:"askedByName,omitempty"` // names for people
	Payer          string            `json:"payer"`
	PayerName      string            `json:"payerName,omitempty"`
	AskedAt        time.Time         `json:"askedAt"`
	Deadline       time.Time         `json:"deadline,omitzero"`
	Who            string            `json:"who"` // may answer
	MayAnswer      bool              `json:"mayAnswer"`
	Votes          []Vote            `json:"votes,omitempty"`
	State          string            `json:"state"`
	AnsweredBy     string            `json:"answeredBy,omitempty"`
	AnsweredByName string            `json:"answeredByName,omitempty"`
	AnsweredAt     time.Time         `json:"answeredAt,omitzero"`
	Note           string            `json:"note,omitempty"`
	Bound          json.RawMessage   `json:"bound,omitempty"`
}

// Vote is one person's answer to an approval.
type Vote struct {
	By     string    `json:"by"`
	ByName string    `json:"byName,omitempty"`
	OK     bool      `json:"ok"`
	Note   string    `json:"note,omitempty"`
	At     time.Time `json:"at"`
}

// Answer answers an approval.
type Answer struct {
	ID       string `json:"id" maxLen:"200" noun:"approval" doc:"the approval's id"`
	Approved bool   `json:"approved" doc:"true: allow it"`
	Note     string `json:"note,omitempty" maxLen:"4000" doc:"a reason, for the agent and the record"`
	// Always are rules to keep with the approval.
	Always []string `json:"always,omitempty" maxItems:"100" cli:"-" slash:"-" doc:"rules to keep with the approval: those of one proposed step"`
}

// CallAnswer answers the approval of a call.
type CallAnswer struct {
	ID       string `json:"id" maxLen:"1024" noun:"session" doc:"the session's id"`
	CallID   string `json:"callId" maxLen:"512" doc:"the call's id, or the approval's"`
	Approved bool   `json:"approved" doc:"true: allow it"`
	Note     string `json:"note,omitempty" maxLen:"4000" doc:"for the model and the record"`
}

// The operations on approvals.
var (
	ListApprovals = operation.New(operation.Info{Name: "approval.list", Help: "List pending approvals, including those of tasks", Scope: operation.Read,
		Doc:    "Calls of agents come first, newest first, then tasks, those that have waited longest first. A task's approval has the task's id. The list of a session has its calls only.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP: []operation.HTTP{{Route: "GET /api/approvals", ID: "listApprovals"},
			{Route: "GET /api/sessions/{session}/approvals", ID: "sessionApprovals", Help: "List pending approvals of a session"}},
		CLI:     []operation.CLI{{Words: "approvals list", Help: "List pending approvals, including those of tasks"}},
		Slash:   []operation.Slash{{Words: "approvals", Options: "limit", Show: "- {label:200} ({askedAt:minute}, `{id}`), by {who:100}"}},
		Tool:    "approval_list",
		Columns: "ID=id | KIND=kind | STATE=state | ASKED=askedAt:minute | BY=askedByName | RISK=risk | WHAT=label:70",
		Empty:   "there are no pending approvals"}, Approvals.ListApprovals)

	GetApproval = operation.New(operation.Info{Name: "approval.get", Help: "Show an approval with all details", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/approvals/{id}", ID: "getApproval"}},
		CLI:  []operation.CLI{{Words: "approvals show", Args: "[ID]"}}, MCP: "approval_get"}, Approvals.GetApproval)

	AnswerApproval = operation.New(operation.Info{Name: "approval.answer", Help: "Answer an approval", Scope: operation.Approve, Effect: operation.Changes,
		Doc:    "An approval that is already answered is a conflict; about says how it was answered. For a task, this answers its result or plan, with the rights of the caller on the task; a denial needs a note, which the worker gets. To answer a question, approve it with the values of its fields in the note: one NAME: VALUE per line, a JSON object, or the value of the only field. If a value does not fit, the answer is invalid and the question stays open.",
		Errors: []operation.Kind{operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/approvals/{id}", ID: "answerApproval", Body: "Verdict"}},
		CLI: []operation.CLI{{Words: "approvals approve", Args: "[ID]", Set: map[string]any{"approved": true}, Help: "Approve a call, or the result or plan of a task"},
			{Words: "approvals deny", Args: "[ID]", Set: map[string]any{"approved": false}, Help: "Deny a call, or return a task to its worker with a note"}},
		MCP:  "approval_answer", // an agent must not answer for the people who are asked
		Done: "{state}: {tool}"}, Approvals.AnswerApproval)

	AnswerCall = operation.New(operation.Info{Name: "approval.answer_call", Help: "Answer the approval of a call", Scope: operation.Approve,
		Effect: operation.Changes, Errors: []operation.Kind{operation.Conflict},
		HTTP: []operation.HTTP{{Route: "POST /api/sessions/{id}/approvals/{callId}", ID: "answerCall", Tag: "approvals", Body: "Verdict"}},
	}, Approvals.AnswerCall)
)

func approvals() []operation.Any {
	return []operation.Any{ListApprovals, GetApproval, AnswerApproval, AnswerCall}
}
