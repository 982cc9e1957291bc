package work

import (
	"maps"
	"slices"

	"chorus/internal/chat"
)

// EventsWritten is a thread id that no thread has. Under it, subscribers of
// the bus are told that there may be new work events.
const EventsWritten chat.ThreadID = "cli:work:events"

// EventMergeDelayed means that a finished task cannot be merged yet, for example
// because its remote cannot be reached. The merge is retried.
const EventMergeDelayed = "task.merge_delayed"

// EventTypes returns the types of all work events, sorted.
func EventTypes() []string {
	out := []string{
		"task.created", "task.edited", "task.deleted", "task.dependency_added", "task.dependency_removed", "task.taken_over", EventReminder, EventStuck, EventMergeDelayed,
		"project.created", "project.edited", "project.paused", "project.resumed", "project.channel", "project.command", "project.deleted", "repo.added",
		"note.created", "note.updated", "note.appended", "note.deleted", "note.thread",
		"git.committed", "git.pushed", "git.created", "git.checked_out", "git.merged", "git.pull_request",
		"orchestrator.paused", "orchestrator.running",
	}
	for _, name := range slices.Concat(slices.Collect(maps.Values(eventNames)), slices.Collect(maps.Values(stepEvents))) {
		out = append(out, "task."+name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
