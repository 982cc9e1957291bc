package work

import (
	"errors"
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
	Project string
	State   State
	Parent  string
	All     bool   // those that are over too
	After   string // the last one of the page before, by its id
	Limit   int
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
	Done                 int // completed ones
	Entries              int
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
