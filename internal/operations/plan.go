package operations

import (
	"context"

	"chorus/internal/operation"
)

// Plans implements operations on the plans of tasks.
type Plans interface {
	GetTaskPlan(context.Context, operation.Caller, TaskRef) (TaskPlan, error)
	ApprovePlan(context.Context, operation.Caller, TaskRef) (TaskPlan, error)
	RejectPlan(context.Context, operation.Caller, TaskFeedback) (TaskMove, error)
	DeletePlan(context.Context, operation.Caller, TaskRef) (TaskMove, error)
}

// TaskPlan is the plan of a task.
type TaskPlan struct {
	ID         string      `json:"id"`
	Title      string      `json:"title"`
	Status     string      `json:"status"` // of the task
	State      string      `json:"state"`  // of the plan: found, approved, rejected or deleted
	Source     string      `json:"source"` // the file it was read from, or answer
	Background string      `json:"background,omitempty"`
	Steps      []PlanStep  `json:"steps"`
	Subtasks   []TaskBrief `json:"subtasks,omitempty"` // the tasks made from its steps
	DecidedBy  string      `json:"decidedBy,omitempty"`
}

// PlanStep is a step of a plan.
type PlanStep struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	Text   string `json:"text,omitempty"`
}

// The operations on plans.
var (
	GetTaskPlan = operation.New(operation.Info{Name: "task.plan", Help: "Show the plan of a task, step by step", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/tasks/{id}/plan", ID: "getTaskPlan", Tag: "tasks"}},
		CLI:    []operation.CLI{{Words: "task plan", Args: "ID"}},
		Tool:   "get_task_plan"}, Plans.GetTaskPlan)

	ApprovePlan = operation.New(operation.Info{Name: "task.approve-plan", Help: "Approve a task's plan, so that its steps become tasks", Scope: operation.Chat, Effect: operation.Changes,
		Doc:    "Each step needs the one before it. All of them work on the task's branch, which the last one merges.",
		Errors: []operation.Kind{operation.Forbidden, operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/tasks/{id}/plan/approve", ID: "approvePlan", Tag: "tasks"}},
		CLI:    []operation.CLI{{Words: "task approve-plan", Args: "ID"}},
		Tool:   "approve_plan", Done: "the plan of task {id} is approved"}, Plans.ApprovePlan)

	RejectPlan = operation.New(operation.Info{Name: "task.reject-plan", Help: "Reject a task's plan and say what should change", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/tasks/{id}/plan/reject", ID: "rejectPlan", Body: "TaskFeedback", Tag: "tasks"}},
		CLI:    []operation.CLI{{Words: "task reject-plan", Args: "ID FEEDBACK", Example: "  chorus task reject-plan calm-otter 'Start with the tests'"}},
		Tool:   "reject_plan", Done: "task {id} is {status} again"}, Plans.RejectPlan)

	DeletePlan = operation.New(operation.Info{Name: "task.delete-plan", Help: "Use a task's plan as its result, so that it is merged", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/tasks/{id}/plan", ID: "deletePlan", Tag: "tasks"}},
		CLI:    []operation.CLI{{Words: "task delete-plan", Args: "ID"}},
		Tool:   "delete_plan", Done: "task {id} continues without a plan"}, Plans.DeletePlan)
)

func plans() []operation.Any {
	return []operation.Any{GetTaskPlan, ApprovePlan, RejectPlan, DeletePlan}
}
