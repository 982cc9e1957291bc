package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Workers implements operations on the processes that work on tasks.
type Workers interface {
	ListWorkers(context.Context, operation.Caller, WorkerQuery) (operation.List[Worker], error)
}

// WorkerQuery selects a part of the list of workers.
type WorkerQuery struct{ Page }

// Worker is a process that works on tasks: the server, or one started with chorus worker.
type Worker struct {
	Name        string       `json:"name"`
	State       string       `json:"state"` // idle, working, draining or gone
	Host        string       `json:"host,omitempty"`
	PID         int          `json:"pid,omitempty"`
	Slots       int          `json:"slots"` // tasks at once
	Projects    []string     `json:"projects,omitempty"`
	Agents      []string     `json:"agents,omitempty"`
	Since       time.Time    `json:"since,omitzero"`
	HeartbeatAt time.Time    `json:"heartbeatAt,omitzero"`
	Busy        int          `json:"busy"` // tasks that use a slot
	WorksOn     string       `json:"worksOn,omitempty"`
	Tasks       []WorkerTask `json:"tasks"`
}

// WorkerTask is a task of a worker.
type WorkerTask struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Project string    `json:"projectId"`
	Status  string    `json:"status"`
	Agent   string    `json:"assignedAgent"`
	Attempt int       `json:"attempt"`
	Since   time.Time `json:"since"`
}

// The operations on workers.
var (
	ListWorkers = operation.New(operation.Info{Name: "worker.list", Help: "List workers, with the tasks that they work on", Scope: operation.Read,
		Doc:  "A worker is the server itself, or a process started with chorus worker. A worker that is gone is listed as long as it has tasks that nobody took over.",
		HTTP: []operation.HTTP{{Route: "GET /api/workers", ID: "listWorkers"}},
		CLI:  []operation.CLI{{Words: "worker list"}}, Tool: "list_workers",
		Slash:   []operation.Slash{{Words: "worker list", Show: "- **{name}** {state}, {busy} of {slots}\n  {worksOn:200}"}},
		Columns: "NAME=name | STATE=state | BUSY=busy | SLOTS=slots | SINCE=since:minute | HEARTBEAT=heartbeatAt:second | WORKS ON=worksOn",
		Empty:   "there are no workers; start chorus serve or chorus worker"}, Workers.ListWorkers)
)

func workers() []operation.Any { return []operation.Any{ListWorkers} }
