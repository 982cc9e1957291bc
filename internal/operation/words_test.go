package operation_test

import (
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// An error names the command as whoever reads it would give it.
func TestErrorsSpeakTheWordsOfThePlace(t *testing.T) {
	t.Parallel()
	text := "Task 'x' not found; `list_tasks` shows those there are, `git_log` and `agent_list` too, `no_such_tool` does not"
	for place, want := range map[string]string{
		operation.InCLI:   "Task 'x' not found; `chorus task list` shows those there are, `chorus git log` and `chorus agent list` too, `no_such_tool` does not",
		operation.InSlash: "Task 'x' not found; `/task list` shows those there are, `/git log` and `/worker agents` too, `no_such_tool` does not",
		operation.AsTool:  text,
	} {
		if got := operations.All().Words(place, text); got != want {
			t.Errorf("%s: %s", place, got)
		}
	}
	missing := operation.InvalidField("projectId", "project_id is required (no active project set)")
	for place, want := range map[string]string{
		operation.InCLI: "--project is required (no active project set)", operation.InSlash: "project is required (no active project set)", operation.AsTool: missing.Message,
	} {
		if got := operations.CreateTask.NamedIn(place, missing).Error(); got != want {
			t.Errorf("%s: %s", place, got)
		}
	}
	if got := operations.StopTask.NamedIn(operation.InCLI, operation.InvalidField("id", "task_id: it is required")).Error(); got != "ID: it is required" {
		t.Error(got)
	}
}
