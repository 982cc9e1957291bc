package work

import (
	"slices"
	"testing"
)

// Every offer is a step that the table allows, and nothing that a worker holds can be restarted.
func TestOffers(t *testing.T) {
	t.Parallel()
	want := map[State][]Action{
		Defined: {ActionRestart}, Ready: nil, Assigned: {ActionStop}, InProgress: {ActionStop}, WaitingInput: {ActionStop}, Paused: {ActionStop, ActionRestart}, Verifying: nil,
		AwaitingPlanApproval: {ActionApprove, ActionStop, ActionRestart, ActionReopen},
		AwaitingApproval:     {ActionApprove, ActionRestart, ActionReopen}, Completed: {ActionReopen}, Failed: {ActionRestart, ActionReopen, ActionSkip}, Blocked: {ActionRestart, ActionReopen, ActionSkip},
	}
	for _, from := range States() {
		actions, ok := want[from]
		if !ok {
			t.Errorf("what %s offers is not known", from)
		}
		var got []Action
		for _, o := range Offers(from) {
			got = append(got, o.Action)
			if !Legal(from, o.To) {
				t.Errorf("%s: %s leads to %s, which no rule allows", from, o.Action, o.To)
			}
		}
		if !slices.Equal(got, actions) {
			t.Errorf("%s offers %v, want %v", from, got, actions)
		}
	}
}
