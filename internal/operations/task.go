package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Tasks implements operations on tasks.
type Tasks interface {
	ListTasks(context.Context, operation.Caller, TaskQuery) (operation.List[Task], error)
	CreateTask(context.Context, operation.Caller, NewTask) (Task, error)
	GetTask(context.Context, operation.Caller, TaskRef) (Task, error)
	EditTask(context.Context, operation.Caller, TaskChanges) (Task, error)
	StopTask(context.Context, operation.Caller, TaskRef) (TaskMove, error)
	RestartTask(context.Context, operation.Caller, TaskRef) (TaskMove, error)
	DeleteTask(context.Context, operation.Caller, TaskRef) (TaskMove, error)
	ApproveTask(context.Context, operation.Caller, TaskRef) (TaskMove, error)
	SkipTask(context.Context, operation.Caller, TaskRef) (TaskMove, error)
	ReopenTask(context.Context, operation.Caller, TaskFeedback) (TaskMove, error)
	ResolveConflict(context.Context, operation.Caller, TaskRef) (Task, error)
	SetTaskStatus(context.Context, operation.Caller, TaskStatusChange) (TaskMove, error)
	GetTaskResult(context.Context, operation.Caller, TaskRef) (TaskResult, error)
	GetTaskDiff(context.Context, operation.Caller, TaskDiffQuery) (TaskDiff, error)
	GetTaskTree(context.Context, operation.Caller, TaskRef) (operation.List[TaskNode], error)
	GetChainHealth(context.Context, operation.Caller, ChainQuery) (ChainHealth, error)
	GetAgentError(context.Context, operation.Caller, TaskRef) (TaskError, error)
	AddDependency(context.Context, operation.Caller, TaskDependency) (TaskWaits, error)
	RemoveDependency(context.Context, operation.Caller, TaskDependency) (TaskWaits, error)
}

// Queue implements operations on all work.
type Queue interface {
	GetWorkStatus(context.Context, operation.Caller, operation.None) (WorkStatus, error)
	GetRecentEvents(context.Context, operation.Caller, WorkEventQuery) (operation.List[WorkEvent], error)
	WaitForWork(context.Context, operation.Caller, WorkWait) (WorkNews, error)
	GetTokenUsage(context.Context, operation.Caller, TokenUsageQuery) (TokenUsage, error)
	ControlOrchestrator(context.Context, operation.Caller, OrchestratorAction) (Orchestrator, error)
	GetTaskGraph(context.Context, operation.Caller, TaskGraphQuery) (TaskGraph, error)
}

// NewTask describes a new task.
type NewTask struct {
	Title       string   `json:"title" minLen:"1" maxLen:"200" doc:"what to do, in one line"`
	Description string   `json:"description,omitempty" maxLen:"100000" cli:"description,d" doc:"everything the worker needs to know: it does not see this conversation; left out: the title"`
	Project     string   `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Priority    int      `json:"priority,omitempty" min:"1" max:"1000000" doc:"lower is sooner; left out: 100"`
	Repo        string   `json:"repoId,omitempty" maxLen:"100" tool:"repo_id" cli:"repo" slash:"repo" doc:"the repository of the project; left out: its first one"`
	Approval    bool     `json:"requiresApproval,omitempty" tool:"requires_approval" cli:"approval" slash:"approval" doc:"require approval before the result is merged"`
	Type        string   `json:"taskType,omitempty" enum:"bugfix,chore,docs,feature,plan,refactor,research,test" tool:"task_type" cli:"type" slash:"type" doc:"the kind of work"`
	Agent       string   `json:"agent,omitempty" maxLen:"64" noun:"agent" slash:"-" doc:"who works on it; left out: the default agent"`
	Needs       []string `json:"dependsOn,omitempty" maxItems:"50" tool:"depends_on" cli:"needs" slash:"-" doc:"ids of tasks to complete first"`
	MaxRetries  *int     `json:"maxRetries,omitempty" min:"1" max:"20" tool:"max_retries" slash:"-" doc:"number of failures before it is blocked; left out: 3"`
	Key         string   `json:"-" key:"true"`
}

// TaskChanges are the fields of a task to change; others do not change.
type TaskChanges struct {
	ID          string `json:"id" minLen:"1" maxLen:"64" noun:"task" tool:"task_id" slash:"task" doc:"the task's id"`
	Title       string `json:"title,omitempty" maxLen:"200" doc:"another title"`
	Description string `json:"description,omitempty" maxLen:"100000" cli:"description,d" doc:"another description; the current run does not see it"`
	Priority    *int   `json:"priority,omitempty" min:"1" max:"1000000" doc:"lower is sooner"`
	Type        string `json:"taskType,omitempty" enum:"bugfix,chore,docs,feature,plan,refactor,research,test" tool:"task_type" cli:"type" slash:"type" doc:"the kind of work"`
	Approval    *bool  `json:"requiresApproval,omitempty" tool:"requires_approval" cli:"approval" slash:"approval" doc:"require approval before the result is merged"`
	MaxRetries  *int   `json:"maxRetries,omitempty" min:"1" max:"20" tool:"max_retries" slash:"-" doc:"number of failures before it is blocked"`
}

// TaskQuery filters tasks.
type TaskQuery struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"only those of a project"`
	Status  string `json:"status,omitempty" enum:"DEFINED,READY,ASSIGNED,IN_PROGRESS,WAITING_INPUT,PAUSED,VERIFYING,AWAITING_APPROVAL,AWAITING_PLAN_APPROVAL,COMPLETED,FAILED,BLOCKED" doc:"only those in this state"`
	All     bool   `json:"includeCompleted,omitempty" tool:"include_completed" cli:"all,a" slash:"all" doc:"also those that are completed, failed or blocked"`
	Order   string `json:"order,omitempty" enum:"urgency,newest" cli:"order" slash:"-" doc:"newest: last changed first; left out: most urgent first"`
	Cursor  string `json:"cursor,omitempty" maxLen:"1024" cli:"-" slash:"-" doc:"next of the previous page"`
	Limit   int    `json:"limit,omitempty" min:"1" max:"200" default:"50" doc:"maximum number of results"`
}

// TaskRef names a task.
type TaskRef struct {
	ID string `json:"id" minLen:"1" maxLen:"64" noun:"task" tool:"task_id" slash:"task" doc:"the task's id"`
}

// TaskDiffQuery says how much of a task's changes to show.
type TaskDiffQuery struct {
	ID    string `json:"id" minLen:"1" maxLen:"64" noun:"task" tool:"task_id" slash:"task" doc:"the task's id"`
	Whole bool   `json:"whole,omitempty" tool:"-" slash:"-" doc:"all of it; left out: the first 200,000 bytes"`
}

// TaskFeedback says what is wrong with a task's result.
type TaskFeedback struct {
	ID       string `json:"id" minLen:"1" maxLen:"64" noun:"task" tool:"task_id" slash:"task" doc:"the task's id"`
	Feedback string `json:"feedback" minLen:"1" maxLen:"50000" doc:"what should change"`
}

// TaskStatusChange sets a task's state, ignoring the rules.
type TaskStatusChange struct {
	ID     string `json:"id" minLen:"1" maxLen:"64" noun:"task" tool:"task_id" slash:"task" doc:"the task's id"`
	Status string `json:"status" enum:"DEFINED,READY,IN_PROGRESS,WAITING_INPUT,PAUSED,AWAITING_APPROVAL,COMPLETED,FAILED,BLOCKED" doc:"the new state"`
}

// TaskDependency says that a task needs another.
type TaskDependency struct {
	ID    string `json:"id" minLen:"1" maxLen:"64" noun:"task" tool:"task_id" slash:"task" doc:"the task that waits"`
	Needs string `json:"dependsOn" minLen:"1" maxLen:"64" noun:"task" tool:"depends_on" slash:"needs" doc:"the task to complete first"`
}

// TaskWaits says which task waits for which.
type TaskWaits struct {
	ID    string `json:"id"`
	Needs string `json:"dependsOn"`
}

// ChainQuery says which blocked tasks to check.
type ChainQuery struct {
	Task    string `json:"taskId,omitempty" maxLen:"64" noun:"task" tool:"task_id" cli:"task" slash:"task" doc:"a blocked task"`
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"all blocked tasks of a project; left out: of all"`
}

// Task is a piece of work for an agent.
type Task struct {
	ID          string      `json:"id"`
	ProjectID   string      `json:"projectId"`
	Title       string      `json:"title"`
	Description string      `json:"description,omitempty"`
	Status      string      `json:"status"`
	Why         string      `json:"why,omitempty"` // why it is paused, failed or blocked, or what it asks
	Priority    int         `json:"priority"`
	Type        string      `json:"taskType,omitempty"`
	Agent       string      `json:"assignedAgent,omitempty"`
	Repo        string      `json:"repoId,omitempty"`
	Branch      string      `json:"branch,omitempty"`
	PR          string      `json:"prUrl,omitempty"`
	Approval    bool        `json:"requiresApproval,omitempty"`
	Attempt     int         `json:"attempt"`
	Retries     int         `json:"retryCount"`
	MaxRetries  int         `json:"maxRetries"`
	NotBefore   time.Time   `json:"resumeAfter,omitzero"`
	ParentID    string      `json:"parentTaskId,omitempty"`
	SessionID   string      `json:"sessionId"` // its conversation
	Owner       string      `json:"owner"`
	OwnerName   string      `json:"ownerName,omitempty"`
	Approvers   []string    `json:"approvers,omitempty"` // names of those who can approve its result; none: everybody who sees it
	Needs       []TaskBrief `json:"dependsOn,omitempty"`
	Blocks      []TaskBrief `json:"blocks,omitempty"`
	Subtasks    []TaskBrief `json:"subtasks,omitempty"`
	Resolves    string      `json:"resolvesTaskId,omitempty"`   // the task whose merge conflict it resolves
	ResolvedBy  string      `json:"resolvedByTaskId,omitempty"` // the task that resolves its merge conflict
	Warning     string      `json:"warning,omitempty"`
	CreatedAt   time.Time   `json:"createdAt"`
	MovedAt     time.Time   `json:"movedAt"`
}

// TaskBrief is a task in brief.
type TaskBrief struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
}

// TaskMove is the result of changing a task's state.
type TaskMove struct {
	ID             string      `json:"id"`
	Title          string      `json:"title"`
	Status         string      `json:"status,omitempty"`
	PreviousStatus string      `json:"previousStatus"`
	Unblocked      []TaskBrief `json:"unblocked,omitempty"`
	Stuck          []TaskBrief `json:"stuckDownstream,omitempty"` // tasks that now wait for it
	Warning        string      `json:"warning,omitempty"`
}

// TaskResult is the result of an attempt.
type TaskResult struct {
	ID       string    `json:"taskId"`
	Attempt  int       `json:"attempt"`
	Agent    string    `json:"agentId,omitempty"`
	Result   string    `json:"result"` // completed, failed, paused_tokens, paused_rate_limit or stopped
	Summary  string    `json:"summary,omitempty"`
	Files    []string  `json:"filesChanged"`
	Error    string    `json:"errorMessage,omitempty"`
	Tokens   int64     `json:"tokensUsed"`
	CostUSD  float64   `json:"costUsd"`
	At       time.Time `json:"createdAt"`
	Attempts int       `json:"attempts"`
	// Before are the earlier attempts, newest first.
	Before []TaskResult `json:"previousAttempts,omitempty"`
}

// TaskDiff is the changes of a task.
type TaskDiff struct {
	ID     string   `json:"taskId"`
	Branch string   `json:"branch"`
	Base   string   `json:"base"`
	Files  []string `json:"filesChanged"`
	Diff   string   `json:"diff"`
	// Truncated means that there is more.
	Truncated bool `json:"truncated,omitempty"`
}

// TaskNode is a task in a tree.
type TaskNode struct {
	Depth  int    `json:"depth"`
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
	Line   string `json:"line"` // as drawn
}

// ChainHealth says which tasks wait for blocked ones.
type ChainHealth struct {
	ProjectID string       `json:"projectId,omitempty"`
	Chains    []StuckChain `json:"stuckChains"`      // at most 50
	Total     int          `json:"totalStuckChains"` // total
	Message   string       `json:"message,omitempty"`
}

// StuckChain is a blocked task and the tasks that wait for it.
type StuckChain struct {
	Blocked TaskBrief   `json:"blockedTask"`
	Stuck   []TaskBrief `json:"stuckDownstream"` // at most 50
	Count   int         `json:"stuckCount"`      // total
}

// TaskError is why a task failed.
type TaskError struct {
	ID      string `json:"taskId"`
	Title   string `json:"title"`
	Status  string `json:"status"`
	Retries string `json:"retries"` // "1 / 3"
	Result  string `json:"result,omitempty"`
	Type    string `json:"errorType,omitempty"`
	Error   string `json:"errorMessage,omitempty"`
	Fix     string `json:"suggestedFix,omitempty"`
	Summary string `json:"agentSummary,omitempty"`
	Message string `json:"message,omitempty"`
}

// WorkStatus is an overview of all work.
type WorkStatus struct {
	Projects   int            `json:"projects"`
	Paused     bool           `json:"orchestratorPaused"`
	Running    int            `json:"runningTasks"`
	Workers    int            `json:"workers"`
	Total      int            `json:"totalTasks"`
	ByStatus   map[string]int `json:"byStatus,omitempty"`
	InProgress []Task         `json:"inProgress"`
	Ready      []Task         `json:"readyToWork"`
	Attention  []Task         `json:"needsAttention"` // waiting for somebody
}

// WorkEventQuery filters events.
type WorkEventQuery struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"only those of a project"`
	Task    string `json:"taskId,omitempty" maxLen:"64" noun:"task" tool:"task_id" cli:"task" slash:"task" doc:"only those of a task"`
	Cursor  string `json:"cursor,omitempty" maxLen:"1024" cli:"-" slash:"-" doc:"next of the previous page"`
	Limit   int    `json:"limit,omitempty" min:"1" max:"200" default:"10" doc:"maximum number of results"`
}

// WorkEvent is an event of a task or a project.
type WorkEvent struct {
	ID        int64     `json:"id"`
	Type      string    `json:"eventType"`
	ProjectID string    `json:"projectId,omitempty"`
	TaskID    string    `json:"taskId,omitempty"`
	By        string    `json:"by,omitempty"`
	ByName    string    `json:"byName,omitempty"`
	From      string    `json:"from,omitempty"`
	To        string    `json:"to,omitempty"`
	Text      string    `json:"text,omitempty"`
	At        time.Time `json:"timestamp"`
}

// WorkWait says which events to wait for.
type WorkWait struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" doc:"only those of a project"`
	Task    string `json:"taskId,omitempty" maxLen:"64" noun:"task" doc:"only those of a task"`
	After   int64  `json:"after,omitempty" min:"0" max:"9007199254740991" doc:"only later events; left out: answers at once with the current position, unless nothing has ever happened"`
	Wait    int    `json:"waitSeconds,omitempty" min:"1" max:"60" default:"25" doc:"how long to wait for the first event"`
}

// WorkNews are the events since then.
type WorkNews struct {
	Items []WorkEvent `json:"items"`
	After int64       `json:"after" doc:"where to wait next"`
}

// TokenUsageQuery says whose tokens to count.
type TokenUsageQuery struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"by task, of a project"`
	Task    string `json:"taskId,omitempty" maxLen:"64" noun:"task" tool:"task_id" cli:"task" slash:"task" doc:"by agent, of a task"`
	By      string `json:"by,omitempty" enum:"task,day" slash:"-" doc:"day: of a project, on each of the last 90 days; left out: by task"`
}

// TokenUsage is the token usage of tasks.
type TokenUsage struct {
	ProjectID string           `json:"projectId,omitempty"`
	TaskID    string           `json:"taskId,omitempty"`
	Breakdown []TokenUsageLine `json:"breakdown"` // highest first
	Total     int64            `json:"total"`     // total, including parts that are not listed
	// Truncated means that there are more parts.
	Truncated bool `json:"truncated,omitempty"`
}

// TokenUsageLine is the token usage of one part.
type TokenUsageLine struct {
	ProjectID string  `json:"projectId,omitempty"`
	TaskID    string  `json:"taskId,omitempty"`
	Agent     string  `json:"agentId,omitempty"`
	Day       string  `json:"day,omitempty"` // in UTC
	Tokens    int64   `json:"tokens"`
	CostUSD   float64 `json:"costUsd"`
	Entries   int     `json:"entries"`
}

// OrchestratorAction pauses or resumes all work, or asks for its state.
type OrchestratorAction struct {
	Action string `json:"action" enum:"pause,resume,status" doc:"pause: start no more tasks of any project; resume; status"`
}

// Orchestrator says whether tasks are started.
type Orchestrator struct {
	Status  string `json:"status"` // running or paused
	Running int    `json:"runningTasks"`
	Message string `json:"message,omitempty"`
}

// The operations on tasks.
var (
	ListTasks = operation.New(operation.Info{Name: "task.list", Help: "List tasks, the most urgent first", Scope: operation.Read,
		Errors:  []operation.Kind{operation.NotFound},
		HTTP:    []operation.HTTP{{Route: "GET /api/tasks", ID: "listTasks"}},
		CLI:     []operation.CLI{{Words: "task list", Example: "  chorus task list -p my-web-app\n  chorus task list --status BLOCKED"}},
		Slash:   []operation.Slash{{Words: "task list"}},
		Tool:    "list_tasks",
		Label:   "{title:60} ({status})",
		Columns: "ID=id | PROJECT=projectId | STATUS=status | PRIORITY=priority | AGENT=assignedAgent | TITLE=title:60",
		Empty:   "no task is open; create one: chorus task create 'Add a dark mode' -p PROJECT, or see all with --all"}, Tasks.ListTasks)

	CreateTask = operation.New(operation.Info{Name: "task.create", Help: "Create a task for the workers", Scope: operation.Chat, Effect: operation.Creates,
		Doc:    "A worker takes it once everything it needs is completed and it is its project's turn.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/tasks", ID: "createTask", Body: "NewTask", Status: 201}},
		CLI: []operation.CLI{{Words: "task create", Args: "TITLE",
			Example: "  chorus task create 'Add a dark mode' -d 'The page settings.html gets a switch …' -p my-web-app\n  chorus task create 'Test the dark mode' --needs calm-otter -p my-web-app"}},
		Slash: []operation.Slash{{Words: "task create"}},
		Tool:  "create_task", Done: "task {id} is {status}"}, Tasks.CreateTask)

	GetTask = operation.New(operation.Info{Name: "task.get", Help: "Show a task", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/tasks/{id}", ID: "getTask"}},
		CLI:    []operation.CLI{{Words: "task show", Args: "ID"}},
		Slash: []operation.Slash{{Words: "task show", Show: "**{title}** `{id}` {status}\n{why:500}\n{description:block}\n{projectId}, agent {assignedAgent}, priority {priority}, attempt {attempt}\n" +
			"branch {branch}\n{prUrl}\nneeds: {dependsOn:list}"}},
		Tool: "get_task"}, Tasks.GetTask)

	EditTask = operation.New(operation.Info{Name: "task.edit", Help: "Change a task's title, description or priority", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "PATCH /api/tasks/{id}", ID: "editTask", Body: "TaskChanges", NeedsBody: true}},
		CLI:    []operation.CLI{{Words: "task edit", Args: "ID", Example: "  chorus task edit calm-otter --title \"Fix the login on phones\""}},
		Slash:  []operation.Slash{{Words: "task edit"}},
		Tool:   "edit_task", Done: "task {id} is changed"}, Tasks.EditTask)

	StopTask = operation.New(operation.Info{Name: "task.stop", Help: "Stop a task: its worker ends, and it is blocked until somebody restarts it", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/tasks/{id}/stop", ID: "stopTask"}},
		CLI:    []operation.CLI{{Words: "task stop", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "task stop"}},
		Tool:   "stop_task", Done: "task {id} is stopped"}, Tasks.StopTask)

	RestartTask = operation.New(operation.Info{Name: "task.restart", Help: "Restart a task, with all its tries", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/tasks/{id}/restart", ID: "restartTask"}},
		CLI:    []operation.CLI{{Words: "task restart", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "task restart"}},
		Tool:   "restart_task", Done: "task {id} is {status} (it was {previousStatus})"}, Tasks.RestartTask)

	ReopenTask = operation.New(operation.Info{Name: "task.reopen", Help: "Return a finished task to its worker and say what is wrong", Scope: operation.Chat, Effect: operation.Changes,
		Doc:    "The worker sees what it did before and works on the same branch.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/tasks/{id}/reopen", ID: "reopenTask", Body: "TaskFeedback"}},
		CLI:    []operation.CLI{{Words: "task reopen", Args: "ID FEEDBACK", Example: "  chorus task reopen calm-otter 'The switch must remember its state'"}},
		Slash:  []operation.Slash{{Words: "task reopen"}},
		Tool:   "reopen_with_feedback", Done: "task {id} is {status} again"}, Tasks.ReopenTask)

	ResolveConflict = operation.New(operation.Info{Name: "task.resolve-conflict", Help: "Create a task that resolves the merge conflict of a blocked one", Scope: operation.Chat, Effect: operation.Changes,
		Doc:    "It works on a branch that starts at the current target, and merges the blocked task's branch into it. When it is completed, the blocked task is merged again. There is one such task per conflict: asking again returns it.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/tasks/{id}/resolve-conflict", ID: "resolveConflict"}},
		CLI:    []operation.CLI{{Words: "task resolve-conflict", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "task resolve-conflict"}},
		Tool:   "resolve_conflict", Done: "task {id} resolves the conflict"}, Tasks.ResolveConflict)

	DeleteTask = operation.New(operation.Info{Name: "task.delete", Help: "Delete a task that nobody works on; its conversation is kept", Scope: operation.Chat, Effect: operation.Destroys,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/tasks/{id}", ID: "deleteTask"}},
		CLI:    []operation.CLI{{Words: "task delete", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "task delete"}},
		Tool:   "delete_task", Done: "task {id} is deleted"}, Tasks.DeleteTask)

	ApproveTask = operation.New(operation.Info{Name: "task.approve", Help: "Approve a task's result, so that it is merged and completed", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.Forbidden, operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/tasks/{id}/approve", ID: "approveTask"}},
		CLI:    []operation.CLI{{Words: "task approve", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "task approve"}},
		Tool:   "approve_task", Done: "task {id} is approved"}, Tasks.ApproveTask)

	SkipTask = operation.New(operation.Info{Name: "task.skip", Help: "Count a blocked or failed task as completed, so that tasks that need it can start", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/tasks/{id}/skip", ID: "skipTask"}},
		CLI:    []operation.CLI{{Words: "task skip", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "task skip"}},
		Tool:   "skip_task", Done: "task {id} is skipped"}, Tasks.SkipTask)

	SetTaskStatus = operation.New(operation.Info{Name: "task.set-status", Help: "Set a task's state, ignoring the rules", Scope: operation.Admin, Effect: operation.Changes,
		Doc:    "For repairs: nothing else happens, and the event is marked as an override.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "PUT /api/tasks/{id}/status", ID: "setTaskStatus", Body: "TaskStatusChange"}},
		CLI:    []operation.CLI{{Words: "task set-status", Args: "ID STATUS", Example: "  chorus task set-status calm-otter READY"}},
		Slash:  []operation.Slash{{Words: "task set-status"}},
		Tool:   "set_task_status", Done: "task {id} is {status} (it was {previousStatus})"}, Tasks.SetTaskStatus)

	GetTaskResult = operation.New(operation.Info{Name: "task.result", Help: "Show the result of a task's last attempt", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/tasks/{id}/result", ID: "getTaskResult"}},
		CLI:    []operation.CLI{{Words: "task result", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "task result"}},
		Tool:   "get_task_result"}, Tasks.GetTaskResult)

	GetTaskDiff = operation.New(operation.Info{Name: "task.diff", Help: "Show what a task changed", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "GET /api/tasks/{id}/diff", ID: "getTaskDiff"}},
		CLI:    []operation.CLI{{Words: "task diff", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "task diff", Show: "`{branch}` against `{base}`\n{diff:block}"}},
		Tool:   "get_task_diff"}, Tasks.GetTaskDiff)

	GetTaskTree = operation.New(operation.Info{Name: "task.tree", Help: "Show a task with its subtasks and the tasks that need it, as a tree", Scope: operation.Read,
		Errors:  []operation.Kind{operation.NotFound},
		HTTP:    []operation.HTTP{{Route: "GET /api/tasks/{id}/tree", ID: "getTaskTree"}},
		CLI:     []operation.CLI{{Words: "task tree", Args: "ID"}},
		Slash:   []operation.Slash{{Words: "task tree"}},
		Tool:    "get_task_tree",
		Columns: "TASK=line | STATUS=status | TITLE=title:60",
		Empty:   "there is no such task"}, Tasks.GetTaskTree)

	GetChainHealth = operation.New(operation.Info{Name: "task.chain", Help: "Show which tasks are stuck behind blocked ones", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/tasks/chain-health", ID: "getChainHealth"}},
		CLI:    []operation.CLI{{Words: "task chain-health"}},
		Slash:  []operation.Slash{{Words: "task chain-health"}},
		Tool:   "get_chain_health"}, Tasks.GetChainHealth)

	GetAgentError = operation.New(operation.Info{Name: "task.error", Help: "Show why a task failed and what to do", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/tasks/{id}/error", ID: "getAgentError"}},
		CLI:    []operation.CLI{{Words: "task error", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "task error"}},
		Tool:   "get_agent_error"}, Tasks.GetAgentError)

	AddDependency = operation.New(operation.Info{Name: "task.depend", Help: "Make a task wait for another", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "PUT /api/tasks/{id}/dependencies/{dependsOn}", ID: "addDependency"}},
		CLI:    []operation.CLI{{Words: "task depend", Args: "ID DEPENDSON"}},
		Slash:  []operation.Slash{{Words: "task depend"}},
		Tool:   "add_dependency", Done: "task {id} waits for {dependsOn}"}, Tasks.AddDependency)

	RemoveDependency = operation.New(operation.Info{Name: "task.undepend", Help: "Stop a task from waiting for another", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/tasks/{id}/dependencies/{dependsOn}", ID: "removeDependency"}},
		CLI:    []operation.CLI{{Words: "task undepend", Args: "ID DEPENDSON"}},
		Slash:  []operation.Slash{{Words: "task undepend"}},
		Tool:   "remove_dependency", Done: "task {id} no longer waits for {dependsOn}"}, Tasks.RemoveDependency)

	GetWorkStatus = operation.New(operation.Info{Name: "work.status", Help: "Show all work: projects, workers, tasks", Scope: operation.Read,
		HTTP:  []operation.HTTP{{Route: "GET /api/work", ID: "getWorkStatus", Tag: "tasks"}},
		CLI:   []operation.CLI{{Words: "work status"}},
		Slash: []operation.Slash{{Words: "system status"}},
		Tool:  "get_status"}, Queue.GetWorkStatus)

	GetRecentEvents = operation.New(operation.Info{Name: "work.events", Help: "Show what happened to tasks and projects, the newest first", Scope: operation.Read,
		Errors:  []operation.Kind{operation.NotFound},
		HTTP:    []operation.HTTP{{Route: "GET /api/work/events", ID: "getRecentEvents", Tag: "tasks"}},
		CLI:     []operation.CLI{{Words: "work events"}},
		Slash:   []operation.Slash{{Words: "system events"}},
		Tool:    "get_recent_events",
		Columns: "WHEN=timestamp:minute | EVENT=eventType | PROJECT=projectId | TASK=taskId | BY=by:24 | TEXT=text:60",
		Empty:   "no events yet"}, Queue.GetRecentEvents)

	WaitForWork = operation.New(operation.Info{Name: "work.wait", Help: "Wait for events of tasks and projects", Scope: operation.Read,
		Doc:    "Answers with the first events after after, or with none when the time is over. Ask again with the after of the answer. At most 200 events come at once.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/work/wait", ID: "waitForWork", Tag: "tasks"}}}, Queue.WaitForWork)

	GetTokenUsage = operation.New(operation.Info{Name: "work.tokens", Help: "Show token usage, by project, task or agent", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/work/tokens", ID: "getTokenUsage", Tag: "tasks"}},
		CLI:    []operation.CLI{{Words: "work tokens"}},
		Slash:  []operation.Slash{{Words: "system tokens"}},
		Tool:   "get_token_usage"}, Queue.GetTokenUsage)

	ControlOrchestrator = operation.New(operation.Info{Name: "work.control", Help: "Pause or resume the tasks of all projects", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.Forbidden},
		HTTP:   []operation.HTTP{{Route: "POST /api/work/control", ID: "orchestratorControl", Body: "OrchestratorAction", Tag: "tasks"}},
		CLI:    []operation.CLI{{Words: "work control", Args: "ACTION", Example: "  chorus work control pause"}},
		Slash:  []operation.Slash{{Words: "system orchestrator"}},
		Tool:   "orchestrator_control"}, Queue.ControlOrchestrator)
)

func tasks() []operation.Any {
	return []operation.Any{ListTasks, CreateTask, GetChainHealth, GetTask, EditTask, StopTask, RestartTask, ReopenTask, ResolveConflict, DeleteTask, ApproveTask, SkipTask, SetTaskStatus, GetTaskResult,
		GetTaskDiff, GetTaskTree, GetAgentError, AddDependency, RemoveDependency, GetWorkStatus, GetRecentEvents, WaitForWork, GetTokenUsage, ControlOrchestrator, GetTaskGraph}
}
