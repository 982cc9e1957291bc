package acp

import (
	"encoding/json"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"chorus/internal/chat"
	"chorus/internal/pattern"
)

// planKey is the work note that editors show as the plan.
const planKey = "plan"

// planOf returns the plan that a call writes; nil: it writes none. Clearing the note clears the plan.
func planOf(use chat.ToolUse) *string {
	if use.Name != "work_notes" && use.Name != "WorkNotes" {
		return nil
	}
	var in struct{ Action, Key, Value string }
	if json.Unmarshal(use.Args, &in) != nil {
		return nil
	}
	switch {
	case in.Action == "set" && strings.EqualFold(strings.TrimSpace(in.Key), planKey):
		return &in.Value
	case in.Action == "clear" && (in.Key == "" || strings.EqualFold(strings.TrimSpace(in.Key), planKey)):
		return new(string)
	}
	return nil
}

// stepLine matches a line of a plan: a list mark, a box with its state, and the text.
var stepLine = pattern.Lazy(`^(?:[-*+•]|\d{1,3}[.)])?\s*(?:\[(.?)\])?\s*(.*)$`)

// maxSteps is how many steps of a plan are shown.
const maxSteps = 100

// steps parses the entries of a plan, which is a list with a step per line: "- [x] done", "- [~] doing", "- [ ] to do". Headings are left out.
func steps(plan string) []sdk.PlanEntry {
	out := []sdk.PlanEntry{}
	for line := range strings.Lines(plan) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") || len(out) == maxSteps {
			continue
		}
		m := stepLine().FindStringSubmatch(line)
		if m == nil || m[2] == "" {
			continue
		}
		status := sdk.PlanEntryStatusPending
		switch m[1] {
		case "x", "X", "✓", "✔":
			status = sdk.PlanEntryStatusCompleted
		case "~", ">", "-", "/", "*":
			status = sdk.PlanEntryStatusInProgress
		}
		out = append(out, sdk.PlanEntry{Content: m[2], Priority: sdk.PlanEntryPriorityMedium, Status: status})
	}
	return out
}
