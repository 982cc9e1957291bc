// Package work is the domain of the task queue: projects, tasks and what may happen to them,
// repositories, results and events, and the rules that decide what is done next. It is pure: it
// accesses no clock, disk or network, so that every rule can be tested by itself.
//
// It guarantees:
//   - A task moves only by Next, or by an override that is visible in its event.
//   - Plan never assigns beyond a limit, starves nobody, and always decides the same for the same input.
//   - Names and titles from people and models become ids, branches and file names that lead nowhere else.
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

// Project groups tasks and repositories.
type Project struct {
	ID         string
	Name       string
	Weight     float64 // its share relative to other projects
	MaxRuns    int     // maximum number of running tasks
	State      ProjectState
	TokenLimit int64 // in the rolling window; 0: none
	Channel    string
	Owner      chat.Principal
	Shared     bool // visible to everybody who may read
	// Approvers are those who may approve a result or a plan, as
	// ParseApprovers reads them; if empty, whoever sees the project.
	Approvers  []string
	OnConflict string // what happens when a merge has conflicts: ConflictAsks or ConflictTask
	Created    time.Time
}

// Defaults for new projects.
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
	Agent       string // the agent that works on it; "": the worker chooses
	Title       string
	Description string
	Type        string // feature, bugfix …; "" if not specified
	Priority    int    // lower is sooner
	State       State
	Attempt     int // number of attempts so far
	Retries     int // failures since a person last made it ready
	MaxRetries  int
	NotBefore   time.Time // PAUSED or waiting after a failure until then
	Deadline    time.Time // of the current attempt
	Approval    bool      // somebody must approve the result
	Branch      string
	PR          string
	Run         string // the current run
	Worker      string // the process that has the current attempt, or had the last one
	Thread      chat.ThreadID
	Owner       chat.Principal
	PlanSource  string        // the plan it comes from
	Resolves    string        // the task whose merge conflict it resolves
	Origin      chat.ThreadID // the conversation in which it was requested; "" if none
	Reminded    time.Time     // when people were last told that it waits for approval
	Why         string        // why it is paused, failed or blocked
	Created     time.Time
	Moved       time.Time
}

// Defaults for new tasks.
const (
	DefaultPriority   = 100
	DefaultMaxRetries = 3
)

// Types returns the types of tasks.
func Types() []string {
	return []string{"bugfix", "chore", "docs", "feature", "plan", "refactor", "research", "test"}
}

// RepoKind says where a repository comes from.
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
	Path    string // for a link, the checkout; otherwise where ours is stored
	Branch  string // the default branch; "": detected
	Created time.Time
}

// Outcome says how an attempt ended.
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

// Result is the result of an attempt.
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

// Take moves the task by a step and returns the event for it.
func (t *Task) Take(step Step, by string, now time.Time) (Event, error) {
	to, err := Next(t.State, step)
	if err != nil {
		return Event{}, err
	}
	return t.move(to, step, by, now), nil
}

// Overrides is the step of a move that no rule allows.
const Overrides Step = "OVERRIDE"

// Override moves the task regardless of the rules. Its event shows this.
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

// eventNames are the names, for hooks and readers, of events in which a task enters a state.
var eventNames = map[State]string{
	Defined: "defined", Ready: "ready", Assigned: "assigned", InProgress: "started", WaitingInput: "waiting_input", Paused: "paused", Verifying: "verifying",
	AwaitingApproval: "awaiting_approval", AwaitingPlanApproval: "awaiting_plan_approval", Completed: "completed", Failed: "failed", Blocked: "blocked",
}

// stepEvents are the steps whose events say more than the new state.
var stepEvents = map[Step]string{AdminSkip: "skipped", PlanApproved: "plan_approved", PlanRejected: "plan_rejected", PlanDeleted: "plan_deleted", AdminResume: "resumed"}
