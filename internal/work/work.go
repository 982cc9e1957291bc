// Package work is the domain of the task queue: projects, tasks and what may happen to them, repositories, results and
// events, and the rules that decide what is done next. It is pure: it reads no clock, no disk and no network, so that
// every rule can be tested by itself.
//
// It promises:
//   - a task moves only by Next, or by an override that says so in its event;
//   - Plan never assigns beyond a limit, starves nobody, and decides the same whenever it is given the same;
//   - names and titles that people and models give become ids, branches and file names that lead nowhere else.
package work

import (
	"time"

	"chorus/internal/chat"
)

// ProjectState says whether a project's tasks are worked on.
type ProjectState string

// The states of a project.
const (
	Active        ProjectState = "ACTIVE"
	ProjectPaused ProjectState = "PAUSED"
	Archived      ProjectState = "ARCHIVED"
)

// Project is something that tasks are for.
type Project struct {
	ID         string
	Name       string
	Weight     float64 // its share beside other projects
	MaxRuns    int     // tasks that are worked on at once
	State      ProjectState
	TokenLimit int64 // in the rolling window; 0: none
	Channel    string
	Owner      chat.Principal
	Shared     bool // everybody who may read sees it
	// Approvers are those whose yes to a result or a plan counts, as ParseApprovers reads them; none: whoever sees the project.
	Approvers  []string
	OnConflict string // what becomes of a merge with conflicts: ConflictAsks or ConflictTask
	Created    time.Time
}

// What a new project has unless it is told otherwise.
const (
	DefaultWeight  = 1.0
	DefaultMaxRuns = 2
)

// Task is a piece of work for an agent.
type Task struct {
	ID          string
	Project     string
	Parent      string // the task whose plan it is a step of
	Repo        string
	Agent       string // who works on it; "": the worker's choice
	Title       string
	Description string
	Type        string // feature, bugfix …; "": unsaid
	Priority    int    // lower is sooner
	State       State
	Attempt     int // how often it was begun
	Retries     int // failures since it was last made ready by a person
	MaxRetries  int
	NotBefore   time.Time // PAUSED or waiting after a failure until then
	Deadline    time.Time // of the attempt that is on
	Approval    bool      // somebody must say yes to the result
	Branch      string
	PR          string
	Run         string // the run that is on
	Worker      string // the process that has the attempt which is on, or had the last one
	Thread      chat.ThreadID
	Owner       chat.Principal
	PlanSource  string        // the plan it comes from
	Resolves    string        // the task whose merge conflict it resolves
	Origin      chat.ThreadID // the conversation in which it was asked for; "": none
	Reminded    time.Time     // when people were last told that it waits for a yes
	Why         string        // it is paused, failed or blocked
	Created     time.Time
	Moved       time.Time
}

// What a new task has unless it is told otherwise.
const (
	DefaultPriority   = 100
	DefaultMaxRetries = 3
)

// Types are what a task can be.
func Types() []string {
	return []string{"bugfix", "chore", "docs", "feature", "plan", "refactor", "research", "test"}
}

// RepoKind is where a repository comes from.
type RepoKind string

// The kinds of repositories.
const (
	Clone RepoKind = "clone" // of a URL
	Link  RepoKind = "link"  // somebody's own checkout: never pushed
	Init  RepoKind = "init"  // a new one
)

// Repo is a repository of a project.
type Repo struct {
	ID      string
	Project string
	Kind    RepoKind
	URL     string
	Path    string // of a link: the checkout; else where ours is kept
	Branch  string // the default one; "": found out
	Created time.Time
}

// Outcome is how an attempt ended.
type Outcome string

// The outcomes.
const (
	OutcomeCompleted Outcome = "completed"
	OutcomeFailed    Outcome = "failed"
	OutcomeTokens    Outcome = "paused_tokens"
	OutcomeRateLimit Outcome = "paused_rate_limit"
	OutcomeQuestion  Outcome = "waiting_input"
	OutcomeStopped   Outcome = "stopped"
)

// Result is what an attempt gave.
type Result struct {
	Task    string
	Attempt int
	Run     string
	Agent   string
	Outcome Outcome
	Summary string
	Files   []string
	Kind    ErrorKind
	Error   string
	Tokens  int64
	Cost    int64
	At      time.Time
}

// Event is something that happened in the queue.
type Event struct {
	ID      int64
	At      time.Time
	Type    string // task.completed, project.created …
	Project string
	Task    string
	By      string // principal key
	From    State
	To      State
	Step    Step
	Text    string
}

// Take moves the task by a step and gives the event that says so.
func (t *Task) Take(step Step, by string, now time.Time) (Event, error) {
	to, err := Next(t.State, step)
	if err != nil {
		return Event{}, err
	}
	return t.move(to, step, by, now), nil
}

// Overrides is the step of a move that no rule allows.
const Overrides Step = "OVERRIDE"

// Override moves the task whatever the rules say. Its event shows it.
func (t *Task) Override(to State, by string, now time.Time) Event {
	return t.move(to, Overrides, by, now)
}

func (t *Task) move(to State, step Step, by string, now time.Time) Event {
	e := Event{At: now, Type: "task." + eventNames[to], Project: t.Project, Task: t.ID, By: by, From: t.State, To: to, Step: step}
	if name, ok := stepEvents[step]; ok {
		e.Type = "task." + name
	}
	t.State, t.Moved = to, now
	if to != Ready && to != Paused {
		t.NotBefore = time.Time{}
	}
	if !to.Running() && to != WaitingInput {
		t.Deadline = time.Time{}
	}
	return e
}

// eventNames are what hooks and readers call the arrival in a state.
var eventNames = map[State]string{
	Defined: "defined", Ready: "ready", Assigned: "assigned", InProgress: "started", WaitingInput: "waiting_input", Paused: "paused", Verifying: "verifying",
	AwaitingApproval: "awaiting_approval", AwaitingPlanApproval: "awaiting_plan_approval", Completed: "completed", Failed: "failed", Blocked: "blocked",
}

// stepEvents are the steps whose events say more than where the task arrived.
var stepEvents = map[Step]string{AdminSkip: "skipped", PlanApproved: "plan_approved", PlanRejected: "plan_rejected", PlanDeleted: "plan_deleted", AdminResume: "resumed"}
