package operations

import "chorus/internal/operation"

// TaskGraphQuery selects the tasks of a graph.
type TaskGraphQuery struct {
	ID     string `json:"id,omitempty" maxLen:"64" noun:"project" tool:"project_id" slash:"project" doc:"the project's id; left out: the active project"`
	Around string `json:"around,omitempty" maxLen:"64" noun:"task" tool:"task_id" cli:"around" slash:"task" doc:"only the tasks that this task needs or that need it, nearest first"`
	Open   bool   `json:"open,omitempty" tool:"open_only" cli:"open" slash:"open" doc:"without completed tasks"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"1000" default:"200" slash:"-" doc:"maximum number of tasks"`
}

// TaskGraph is tasks of a project and what they need. If there are too many, completed ones are left out first.
type TaskGraph struct {
	ProjectID string         `json:"projectId"`
	Tasks     []TaskBrief    `json:"tasks"`
	Needs     []TaskWaits    `json:"dependencies"`
	Done      map[string]int `json:"completedNeeds,omitempty"` // how many completed tasks that a task needs are left out
	Hidden    int            `json:"hidden,omitempty"`         // how many tasks are left out
	More      bool           `json:"more,omitempty"`           // some tasks are left out
}

// GetTaskGraph returns the data for a drawing of a project's tasks.
var GetTaskGraph = operation.New(operation.Info{Name: "project.graph", Help: "Show which tasks of a project need which", Scope: operation.Read,
	Errors: []operation.Kind{operation.NotFound},
	HTTP:   []operation.HTTP{{Route: "GET /api/projects/{id}/graph", ID: "getTaskGraph"}},
	CLI:    []operation.CLI{{Words: "project graph", Args: "ID"}},
	Tool:   "get_task_graph"}, Queue.GetTaskGraph)
