package runsetup

import (
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/tool/delegate"
	"chorus/internal/transcript"
)

// A run that an agent starts has what the task gives it, and is a part of what the runs above it may spend.
func TestChildrenSpendWithinTheirParents(t *testing.T) {
	t.Parallel()
	var s Setup
	row := journal.Thread{Agent: "main"}
	hook := &transcript.Run{ID: "hook", Terms: chat.Terms{MaxCost: 100_000_000, Model: "m"}}
	child, err := s.childTerms(row, hook, delegate.Task{Agent: "main"})
	if err != nil || child.MaxCost != 0 || child.Above != "hook=100000000" || child.Model != "m" {
		t.Errorf("without a budget of its own: %+v, %v", child, err)
	}
	child, err = s.childTerms(row, hook, delegate.Task{Agent: "main", BudgetUSD: 0.05})
	if err != nil || child.MaxCost != 50_000_000 || child.Above != "hook=100000000" {
		t.Errorf("with one: %+v, %v", child, err)
	}
	child, err = s.childTerms(row, &transcript.Run{ID: "child", Terms: child}, delegate.Task{Agent: "main"})
	if err != nil || child.MaxCost != 0 || child.Above != "hook=100000000,child=50000000" {
		t.Errorf("below that: %+v, %v", child, err)
	}
}
