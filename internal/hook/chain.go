package hook

import (
	"fmt"

	"chorus/internal/chat"
)

// MaxDepth is how many automatic actors may follow each other behind a person.
const MaxDepth = 3

// StoppedError says why a hook does not run because of its cause.
type StoppedError struct{ Why string }

func (e *StoppedError) Error() string { return e.Why }

// ActingFor returns the principal of a hook's run: the hook, acting for its cause and its owner.
// The person behind the cause is left out: a hook has its owner's rights and money and nobody
// else's. A hook that its own run triggers, or at the end of a chain that is too long, does not
// run.
func ActingFor(h Hook, cause chat.Principal) (chat.Principal, error) {
	owner := h.Owner
	row := byThemselves(cause)
	for _, p := range row {
		if p.Kind == chat.HookRule && p.ID == h.ID {
			return chat.Principal{}, &StoppedError{fmt.Sprintf("the hook %s was triggered by its own run and is stopped here; give its trigger a narrower \"where\", or another event_type", h.Name)}
		}
	}
	if len(row) >= MaxDepth {
		return chat.Principal{}, &StoppedError{fmt.Sprintf("%d hooks, schedules or agents have triggered each other before this one, and the limit is %d; let one of them do the work of two", len(row), MaxDepth)}
	}
	acting := &owner
	for i := len(row) - 1; i >= 0; i-- {
		acting = &chat.Principal{Kind: row[i].Kind, ID: row[i].ID, Name: row[i].Name, For: acting}
	}
	return chat.Principal{Kind: chat.HookRule, ID: h.ID, Name: h.Name, For: acting}, nil
}

// byThemselves returns the principals in a chain that are not people, nearest first.
func byThemselves(p chat.Principal) (out []chat.Principal) {
	for at := &p; at != nil && len(out) <= MaxDepth; at = at.For {
		switch at.Kind {
		case chat.HookRule, chat.ScheduleRule, chat.ProcessHook, chat.TaskWorker, chat.OtherAgent:
			out = append(out, *at)
		}
	}
	return out
}
