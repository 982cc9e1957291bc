package work

import (
	"errors"
	"slices"
	"time"
)

// NewTask is a task to be made, with the tasks that it needs.
type NewTask struct {
	Task
	Needs []string
	Key   string // idempotency key of whoever makes it; "": none
}

// ErrMoved says that a task is no longer as whoever wanted to change it saw it.
var ErrMoved = errors.New("the task has moved")

// Filter chooses tasks.
type Filter struct {
	Project  string
	State    State
	Parent   string
	Resolves string // those that resolve the conflict of this task
	All      bool   // those that are over too
	Newest   bool   // those that moved last come first
	After    string // the last one of the page before, by its id
	Limit    int
}

// EventFilter chooses events.
type EventFilter struct {
	Project, Task string
	Before        int64 // id; 0: from the newest on
	After         int64 // id; with Forward
	Forward       bool  // the oldest first, behind After
	Limit         int
}

// Spent is what tasks took since an instant.
type Spent struct {
	Project, Task, Agent string
	Tokens               int64
	Cost                 int64 // billionths of a dollar
	Done                 int   // completed ones
	Entries              int
}

// SpentDay is what the tasks of a project took on a day.
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
	Truncated bool // Text is not all of it
}

// Worktree is a task's own checkout.
type Worktree struct {
	Task, Project, Repo, Path, Branch, Base string
	State                                   string // making, ready or removing
}

// Merge is a merge as it was written down before it was made.
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
	Projects  []string  `json:"projects,omitempty"` // of which it takes tasks; none: of all
	Agents    []string  `json:"agents,omitempty"`   // likewise
	Since     time.Time `json:"since"`
	Heartbeat time.Time `json:"-"`
	Draining  bool      `json:"draining,omitempty"` // it takes no further ones
}

// Takes reports whether a worker takes a task of a project that an agent works on.
func (w Worker) Takes(project, agent string) bool {
	return (len(w.Projects) == 0 || slices.Contains(w.Projects, project)) && (len(w.Agents) == 0 || slices.Contains(w.Agents, agent))
}
