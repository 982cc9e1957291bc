package work

import (
	"maps"
	"slices"

	"chorus/internal/chat"
)

// EventsWritten is the thread, which nobody has, under which subscribers of the bus are told that there may be new events of the work.
const EventsWritten chat.ThreadID = "cli:work:events"

// EventMergeDelayed says that a finished task cannot be merged yet, such as where its remote is not reached, and is tried again.
const EventMergeDelayed = "task.merge_delayed"

// EventTypes are the types of all events of the work, sorted.
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
