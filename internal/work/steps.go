package work

// Plan states: what became of a plan that a task produced.
const (
	PlanIsFound    = "found"
	PlanIsApproved = "approved"
	PlanIsRejected = "rejected"
	PlanIsDeleted  = "deleted"
)

// Proposal is a plan that an attempt produced.
type Proposal struct {
	Task    string
	Attempt int
	Source  string // the file it was read from, or Answer
	Text    string
	Outline
	State string
	By    string // who decided
}

// Answer is the source of a plan that is the worker's answer.
const Answer = "answer"

// AfterStep returns the step that a change of one plan step causes in the task with the plan, or
// "". steps are the states of all steps. merged says that the change merged the whole branch. A
// task that is not IN_PROGRESS waits for a person, and steps do not move it.
func AfterStep(parent State, steps []State, merged bool) Step {
	if parent != InProgress {
		return ""
	}
	open, blocked, moving := 0, 0, 0
	for _, s := range steps {
		switch {
		case s == Completed:
			continue
		case s == Blocked || s == Failed:
			blocked++
		case s != Defined:
			moving++
		}
		open++
	}
	switch {
	case open == 0 && merged:
		return PlanMerged
	case open == 0:
		return PlanEnded
	case blocked > 0 && moving == 0:
		return PlanStuck
	default:
		return ""
	}
}

// Resumes reports whether a move of a step lets the task with the plan continue:
// somebody wants the step to be done after all, or counts it as done.
func Resumes(e Event) bool {
	return e.Step == AdminSkip || e.From.Over() && !e.To.Over()
}
