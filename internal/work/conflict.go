package work

import (
	"fmt"
	"strings"
)

// What happens when a merge has conflicts; a setting of the project.
const (
	ConflictAsks = ""     // a person decides: reopen the task, or have another one created
	ConflictTask = "task" // a task that resolves it is created at once
)

// ConflictWords begin the reason of a task that is blocked by merge conflicts.
const ConflictWords = "merge conflict"

// Conflicted reports whether a task is done but cannot be merged.
func (t Task) Conflicted() bool { return t.State == Blocked && strings.HasPrefix(t.Why, ConflictWords) }

// Resolution returns the task that resolves the conflict of a Conflicted task. It merges that
// task's branch into a branch of its own, which begins at the current target. Its key is derived
// from the attempt, so however often it is created, there is one for each conflict.
func Resolution(t Task) NewTask {
	title := []rune("Resolve the merge conflict of " + t.ID + ": " + t.Title)
	n := NewTask{Key: fmt.Sprintf("conflict/%s/%d", t.ID, t.Attempt), Task: Task{Project: t.Project, Repo: t.Repo, Agent: t.Agent, Title: string(title[:min(len(title), 200)]), Type: "bugfix",
		Priority: t.Priority, MaxRetries: t.MaxRetries, Approval: t.Approval, Owner: t.Owner, Origin: t.Origin, Resolves: t.ID}}
	n.Description = fmt.Sprintf(`Task %[1]s (%[2]s) is done on the branch %[3]s, but that cannot be merged:

> %[4]s

Your branch begins at the branch that it is to be merged into, as that is now. Bring the other branch into yours, resolve the conflicts so that what both sides wanted is kept, check the result, and commit it as a merge:

    git merge %[3]s

Do not do the task anew, and do not copy its changes by hand: that %[1]s is merged is known by the merge commit.

What the task was about:

%[5]s`, "`"+t.ID+"`", t.Title, t.Branch, strings.ReplaceAll(t.Why, "\n", "\n> "), t.Description)
	return n
}
