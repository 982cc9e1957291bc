package operations

import "chorus/internal/operation"

// TaskGraph are the tasks of a project and what they need: what is not completed, and of the completed ones the newest.
type TaskGraph struct {
	ProjectID string      `json:"projectId"`
	Tasks     []TaskBrief `json:"tasks"`
	Needs     []TaskWaits `json:"dependencies"`
	More      bool        `json:"more,omitempty"` // there are tasks that are not in it
}

// GetTaskGraph gives what a drawing of a project's tasks is made of.
var GetTaskGraph = operation.New(operation.Info{Name: "project.graph", Help: "Show which tasks of a project need which", Scope: operation.Read,
	Errors: []operation.Kind{operation.NotFound},
	HTTP:   []operation.HTTP{{Route: "GET /api/projects/{id}/graph", ID: "getTaskGraph"}},
	CLI:    []operation.CLI{{Words: "project graph", Args: "ID"}},
	Tool:   "get_task_graph"}, Queue.GetTaskGraph)
