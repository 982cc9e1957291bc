package work

// Action is what a person can do with a task without an override.
type Action string

// The actions.
const (
	ActionApprove Action = "approve"
	ActionStop    Action = "stop"
	ActionRestart Action = "restart"
	ActionSkip    Action = "skip"
	ActionReopen  Action = "reopen" // restart with an explanation of what was wrong
	// ActionResolve creates a task that resolves a merge conflict. Offers does not
	// know about conflicts, so code that shows a task offers it.
	ActionResolve Action = "resolve"
)

// Offer is an action that is currently allowed, and the state that it leads to.
type Offer struct {
	Action Action
	To     State
}

// Offers returns the actions that a task in a state allows. A task with a worker must be
// stopped before it can be restarted. A task that is being merged is left alone. A
// completed task returns to its worker only with a reason.
func Offers(from State) []Offer {
	var out []Offer
	add := func(a Action, step Step) {
		if to, err := Next(from, step); err == nil {
			out = append(out, Offer{a, to})
		}
	}
	add(ActionApprove, Approved)
	add(ActionApprove, PlanApproved)
	add(ActionStop, AdminStop)
	if !from.Running() && from != WaitingInput && from != Verifying {
		if from != Completed {
			add(ActionRestart, AdminRestart)
		}
		if from != Defined && from != Paused {
			add(ActionReopen, AdminRestart)
		}
	}
	add(ActionSkip, AdminSkip)
	return out
}
