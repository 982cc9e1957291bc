package work

import (
	"fmt"
	"slices"
)

// State is where a task stands.
type State string

// The states of a task.
const (
	Defined          State = "DEFINED"           // waits for other tasks
	Ready            State = "READY"             // waits for a worker
	Assigned         State = "ASSIGNED"          // a worker is preparing to begin
	InProgress       State = "IN_PROGRESS"       // a worker is on it
	WaitingInput     State = "WAITING_INPUT"     // somebody was asked
	Paused           State = "PAUSED"            // goes on at a set time
	Verifying        State = "VERIFYING"         // done; being merged
	AwaitingApproval State = "AWAITING_APPROVAL" // done; somebody must say yes first
	// AwaitingPlanApproval is a task that gave a plan: somebody must say yes before its steps become tasks.
	AwaitingPlanApproval State = "AWAITING_PLAN_APPROVAL"
	Completed            State = "COMPLETED"
	Failed               State = "FAILED"
	Blocked              State = "BLOCKED" // needs a person
)

// States are all of them, in the order in which reports show them.
func States() []State {
	return []State{InProgress, Assigned, Ready, Defined, Paused, WaitingInput, AwaitingPlanApproval, AwaitingApproval, Verifying, Failed, Blocked, Completed}
}

// Known reports whether there is such a state.
func (s State) Known() bool {
	return slices.Contains(States(), s)
}

// Running reports whether a worker holds the task.
func (s State) Running() bool { return s == Assigned || s == InProgress }

// Over reports whether nothing moves the task but a person.
func (s State) Over() bool { return s == Completed || s == Failed || s == Blocked }

// AsksForYes reports whether the task waits until somebody says yes to what it gave.
func (s State) AsksForYes() bool { return s == AwaitingApproval || s == AwaitingPlanApproval }

// Step is what happens to a task: it moves from one state to another.
type Step string

// The steps.
const (
	DepsMet         Step = "DEPS_MET"
	Assign          Step = "ASSIGNED"
	AgentStarted    Step = "AGENT_STARTED"
	AgentCompleted  Step = "AGENT_COMPLETED"
	AgentFailed     Step = "AGENT_FAILED"
	TokensExhausted Step = "TOKENS_EXHAUSTED" // budget or rate limit: it waits
	AgentQuestion   Step = "AGENT_QUESTION"
	HumanReplied    Step = "HUMAN_REPLIED"
	InputTimeout    Step = "INPUT_TIMEOUT"
	ResumeTimer     Step = "RESUME_TIMER"
	VerifyPassed    Step = "VERIFY_PASSED"
	VerifyFailed    Step = "VERIFY_FAILED"
	PRCreated       Step = "PR_CREATED"
	PRMerged        Step = "PR_MERGED"
	PRClosed        Step = "PR_CLOSED"
	Retry           Step = "RETRY"
	MaxRetries      Step = "MAX_RETRIES"
	AdminStop       Step = "ADMIN_STOP"
	AdminSkip       Step = "ADMIN_SKIP"
	AdminRestart    Step = "ADMIN_RESTART"
	Timeout         Step = "TIMEOUT"
	ExecutionError  Step = "EXECUTION_ERROR"
	Recovery        Step = "RECOVERY"

	// Steps that merging before COMPLETED needs.
	NeedsApproval Step = "NEEDS_APPROVAL" // a result that somebody must say yes to, without a pull request
	Approved      Step = "APPROVED"       // the yes; merging follows
	MergeFailed   Step = "MERGE_FAILED"
	Denied        Step = "DENIED" // the run may not do what it needs
	// ConflictResolved is the completion of a task that brought this one's branch home.
	ConflictResolved Step = "CONFLICT_RESOLVED"

	// Steps of tasks with plans. While the steps of its plan are worked on, a task is IN_PROGRESS without a worker.
	PlanFound    Step = "PLAN_FOUND"
	PlanApproved Step = "PLAN_APPROVED" // its steps have become tasks
	PlanRejected Step = "PLAN_REJECTED" // its worker makes another one
	PlanDeleted  Step = "PLAN_DELETED"  // what it gave is a result, not a plan
	PlanMerged   Step = "PLAN_MERGED"   // the last step brought everybody's work home
	PlanEnded    Step = "PLAN_ENDED"    // no step is left that would merge; the task does it itself
	PlanStuck    Step = "PLAN_STUCK"    // no step can go on
	AdminResume  Step = "ADMIN_RESUME"  // somebody made a step ready again
)

type pair struct {
	from State
	step Step
}

// transitions are the legal moves. Whatever is not here needs an override, which is a step of its own.
var transitions = map[pair]State{
	{Defined, DepsMet}:               Ready,
	{Ready, Assign}:                  Assigned,
	{Assigned, AgentStarted}:         InProgress,
	{Assigned, Timeout}:              Blocked,
	{Assigned, ExecutionError}:       Ready,
	{Assigned, Recovery}:             Ready,
	{InProgress, AgentCompleted}:     Verifying,
	{InProgress, AgentFailed}:        Failed,
	{InProgress, TokensExhausted}:    Paused,
	{InProgress, AgentQuestion}:      WaitingInput,
	{InProgress, MaxRetries}:         Blocked,
	{InProgress, Retry}:              Ready,
	{InProgress, AdminStop}:          Blocked,
	{InProgress, Timeout}:            Blocked,
	{InProgress, Recovery}:           Ready,
	{WaitingInput, HumanReplied}:     InProgress,
	{WaitingInput, InputTimeout}:     Paused,
	{Paused, ResumeTimer}:            Ready,
	{Verifying, VerifyPassed}:        Completed,
	{Verifying, VerifyFailed}:        Failed,
	{Verifying, PRCreated}:           AwaitingApproval,
	{AwaitingApproval, PRMerged}:     Completed,
	{AwaitingApproval, PRClosed}:     Blocked,
	{Failed, Retry}:                  Ready,
	{Failed, MaxRetries}:             Blocked,
	{Failed, AdminSkip}:              Completed,
	{Blocked, AdminSkip}:             Completed,
	{Defined, AdminRestart}:          Ready,
	{Assigned, AdminRestart}:         Ready,
	{WaitingInput, AdminRestart}:     Ready,
	{Paused, AdminRestart}:           Ready,
	{Verifying, AdminRestart}:        Ready,
	{AwaitingApproval, AdminRestart}: Ready,
	{Completed, AdminRestart}:        Ready,
	{Failed, AdminRestart}:           Ready,
	{Blocked, AdminRestart}:          Ready,
	// Beyond the 36: COMPLETED only after the merge, and a stop that reaches whatever a worker may still come back to.
	{Assigned, AdminStop}:        Blocked,
	{WaitingInput, AdminStop}:    Blocked,
	{Paused, AdminStop}:          Blocked,
	{Verifying, NeedsApproval}:   AwaitingApproval,
	{Verifying, MergeFailed}:     Blocked,
	{Blocked, ConflictResolved}:  Verifying,
	{AwaitingApproval, Approved}: Verifying,
	{InProgress, Denied}:         Blocked,
	{Assigned, MaxRetries}:       Blocked, // what cannot be prepared
	// Plans.
	{Verifying, PlanFound}:               AwaitingPlanApproval,
	{AwaitingPlanApproval, PlanApproved}: InProgress,
	{AwaitingPlanApproval, PlanRejected}: Ready,
	{AwaitingPlanApproval, PlanDeleted}:  Verifying,
	{AwaitingPlanApproval, AdminRestart}: Ready,
	{AwaitingPlanApproval, AdminStop}:    Blocked,
	{InProgress, PlanMerged}:             Completed,
	{InProgress, PlanEnded}:              Verifying,
	{InProgress, PlanStuck}:              Blocked,
	{Blocked, AdminResume}:               InProgress,
	{Failed, AdminResume}:                InProgress,
	{Completed, AdminResume}:             InProgress,
	{Verifying, AdminResume}:             InProgress,
	{AwaitingApproval, AdminResume}:      InProgress,
}

// Next is the state after a step, or an *IllegalError.
func Next(from State, step Step) (State, error) {
	to, ok := transitions[pair{from, step}]
	if !ok {
		return from, &IllegalError{From: from, Step: step}
	}
	return to, nil
}

// Legal reports whether some step leads from one state to another.
func Legal(from, to State) bool {
	for p, t := range transitions {
		if p.from == from && t == to {
			return true
		}
	}
	return false
}

// IllegalError says that a task cannot take a step in the state it is in.
type IllegalError struct {
	From State
	Step Step
}

func (e *IllegalError) Error() string {
	return fmt.Sprintf("Invalid transition: (%s, %s)", e.From, e.Step)
}
