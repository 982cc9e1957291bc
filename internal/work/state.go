package work

import (
	"fmt"
	"slices"
)

// State is the state of a task.
type State string

// The states of a task.
const (
	Defined          State = "DEFINED"           // waits for other tasks
	Ready            State = "READY"             // waits for a worker
	Assigned         State = "ASSIGNED"          // a worker is preparing it
	InProgress       State = "IN_PROGRESS"       // a worker is working on it
	WaitingInput     State = "WAITING_INPUT"     // somebody was asked
	Paused           State = "PAUSED"            // continues at a set time
	Verifying        State = "VERIFYING"         // done; being merged
	AwaitingApproval State = "AWAITING_APPROVAL" // done; somebody must approve it first
	// AwaitingPlanApproval is a task that produced a plan: somebody must
	// approve it before its steps become tasks.
	AwaitingPlanApproval State = "AWAITING_PLAN_APPROVAL"
	Completed            State = "COMPLETED"
	Failed               State = "FAILED"
	Blocked              State = "BLOCKED" // needs a person
)

// States returns all states, in the order in which reports show them.
func States() []State {
	return []State{InProgress, Assigned, Ready, Defined, Paused, WaitingInput, AwaitingPlanApproval, AwaitingApproval, Verifying, Failed, Blocked, Completed}
}

// Known reports whether the state exists.
func (s State) Known() bool {
	return slices.Contains(States(), s)
}

// Running reports whether the task has a worker.
func (s State) Running() bool { return s == Assigned || s == InProgress }

// Over reports whether only a person can move the task.
func (s State) Over() bool { return s == Completed || s == Failed || s == Blocked }

// AsksForYes reports whether the task waits for somebody to approve its result or plan.
func (s State) AsksForYes() bool { return s == AwaitingApproval || s == AwaitingPlanApproval }

// Step is an event in the life of a task, which moves it from one state to another.
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

	// Steps for merging before COMPLETED.
	NeedsApproval Step = "NEEDS_APPROVAL" // a result that somebody must approve, without a pull request
	Approved      Step = "APPROVED"       // the approval; merging follows
	MergeFailed   Step = "MERGE_FAILED"
	Denied        Step = "DENIED" // the run is not allowed to do what it needs
	// ConflictResolved is the completion of a task that merged this one's branch.
	ConflictResolved Step = "CONFLICT_RESOLVED"

	// Steps of tasks with plans. While the steps of its plan are worked
	// on, a task is IN_PROGRESS without a worker.
	PlanFound    Step = "PLAN_FOUND"
	PlanApproved Step = "PLAN_APPROVED" // its steps have become tasks
	PlanRejected Step = "PLAN_REJECTED" // its worker makes another plan
	PlanDeleted  Step = "PLAN_DELETED"  // what it produced is a result, not a plan
	PlanMerged   Step = "PLAN_MERGED"   // the last step merged everybody's work
	PlanEnded    Step = "PLAN_ENDED"    // no remaining step would merge, so the task does it itself
	PlanStuck    Step = "PLAN_STUCK"    // no step can continue
	AdminResume  Step = "ADMIN_RESUME"  // somebody made a step ready again
)

type pair struct {
	from State
	step Step
}

// transitions are the allowed moves. Everything else needs an override, which is a step of its own.
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
	// In addition to the 36: COMPLETED only after the merge, and a stop that
	// works in every state from which a worker may continue.
	{Assigned, AdminStop}:        Blocked,
	{WaitingInput, AdminStop}:    Blocked,
	{Paused, AdminStop}:          Blocked,
	{Verifying, NeedsApproval}:   AwaitingApproval,
	{Verifying, MergeFailed}:     Blocked,
	{Blocked, ConflictResolved}:  Verifying,
	{AwaitingApproval, Approved}: Verifying,
	{InProgress, Denied}:         Blocked,
	{Assigned, MaxRetries}:       Blocked, // it cannot be prepared
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

// Next returns the state after a step, or an *IllegalError.
func Next(from State, step Step) (State, error) {
	to, ok := transitions[pair{from, step}]
	if !ok {
		return from, &IllegalError{From: from, Step: step}
	}
	return to, nil
}

// Legal reports whether some step leads from one state to the other.
func Legal(from, to State) bool {
	for p, t := range transitions {
		if p.from == from && t == to {
			return true
		}
	}
	return false
}

// IllegalError says that a task cannot take a step in its current state.
type IllegalError struct {
	From State
	Step Step
}

func (e *IllegalError) Error() string {
	return fmt.Sprintf("Invalid transition: (%s, %s)", e.From, e.Step)
}
