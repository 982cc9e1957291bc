package work

import (
	"errors"
	"slices"
	"time"
)

// NewTask is a task to be created, with the tasks that it needs.
type NewTask struct {
	Task
	Needs []string
	Key   string // idempotency key of its creator; "" for none
}

// ErrMoved means that a task was changed since the caller read it.
var ErrMoved = errors.New("the task has moved")

// Filter selects tasks.
type Filter struct {
	Project  string
	State    State
	Parent   string
	Resolves string // tasks that resolve the conflict of this task
	All      bool   // including those that are over
	Newest   bool   // the last moved come first
	After    string // id of the last task of the previous page
	Limit    int
}

// EventFilter selects events.
type EventFilter struct {
	Project, Task string
	Before        int64 // id; 0: from the newest
	After         int64 // id; with Forward
	Forward       bool  // oldest first, after After
	Limit         int
}

// Spent is what tasks have used since an instant.
type Spent struct {
	Project, Task, Agent string
	Tokens               int64
	Cost                 int64 // billionths of a dollar
	Done                 int   // completed ones
	Entries              int
}

// SpentDay is what the tasks of a project used on a day.
type SpentDay struct {
	Day    string // 2026-11-17, in UTC
	Tokens int64
	Cost   int64 // billionths of a dollar
}

// Edge says that a task needs another.
type Edge struct{ Task, Needs string }

// Changes are what a task changed.
type Changes struct {
	Base      string // the branch that it is compared with
	Text      string // a unified diff
	Files     []string
	Truncated bool // Text is incomplete
}

// Worktree is a task's own checkout.
type Worktree struct {
	Task, Project, Repo, Path, Branch, Base string
	State                                   string // making, ready or removing
}

// Merge is a merge as recorded before it is made.
type Merge struct {
	Task    string
	Attempt int
	Target  string
	Head    string
	Base    string
	OID     string
	At      time.Time
}

// Worker is a process that works on tasks.
type Worker struct {
	Name      string    `json:"name"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Slots     int       `json:"slots"`
	Projects  []string  `json:"projects,omitempty"` // projects from which it takes tasks; if empty, all
	Agents    []string  `json:"agents,omitempty"`   // likewise
	Since     time.Time `json:"since"`
	Heartbeat time.Time `json:"-"`
	Draining  bool      `json:"draining,omitempty"` // it takes no more tasks
}

// Takes reports whether a worker takes tasks of this project and agent.
func (w Worker) Takes(project, agent string) bool {
	return (len(w.Projects) == 0 || slices.Contains(w.Projects, project)) && (len(w.Agents) == 0 || slices.Contains(w.Agents, agent))
}
