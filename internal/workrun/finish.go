package workrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/gitrepo"
	"chorus/internal/journal"
	"chorus/internal/work"
)

// mergeTries is how often a merge is retried because the target moved meanwhile.
const mergeTries = 5

// finish completes the work of a task: it commits what is left, asks for approval
// if needed, and merges. Only then is the task completed.
func (r *Runner) finish(ctx context.Context, t work.Task) (moved bool) {
	now, err := r.Tasks.Task(ctx, t.ID)
	if err != nil || now.State != work.Verifying || now.Attempt != t.Attempt {
		return false // it moved meanwhile
	}
	t = now
	result := work.Result{Task: t.ID, Attempt: t.Attempt, Agent: t.Agent, Outcome: work.OutcomeCompleted}
	if result.Summary, err = r.Answer(ctx, t.Thread); err != nil {
		r.notMerged(ctx, t, err)
		return false
	}
	if found, err := r.findPlan(ctx, t, result); err != nil || found {
		if err != nil && !errors.Is(err, work.ErrMoved) {
			r.notMerged(ctx, t, err)
		}
		return found
	}
	last, err := r.lastStep(ctx, t)
	if err != nil {
		r.notMerged(ctx, t, err)
		return false
	}
	step, why := work.VerifyPassed, ""
	if t.Repo == "" {
		step, why, err = r.withoutRepo(ctx, t, last)
	} else {
		step, why, err = r.bring(ctx, t, last, &result)
	}
	if err != nil {
		r.notMerged(ctx, t, err)
		return false
	}
	if step == work.MergeFailed {
		result.Kind, result.Error = work.ErrorGit, why
		if strings.HasPrefix(why, work.ConflictWords) {
			result.Kind = work.ErrorConflict
		}
	}
	if step == "" {
		return false
	}
	r.mu.Lock()
	delete(r.late, t.ID)
	delete(r.said, t.ID)
	r.mu.Unlock()
	if _, err := r.Tasks.Finish(ctx, result, step, last, system, why); err != nil && ctx.Err() == nil && !errors.Is(err, work.ErrMoved) {
		r.notMerged(ctx, t, err)
		return false
	}
	return true
}

// tryAgain is the first pause after a failed merge. It doubles each time, up to five minutes.
const tryAgain = 5 * time.Second

// notMerged handles a problem that prevents merging a finished task now, such as an unreachable
// remote. The merge is retried. From the second time on the task says why, and whoever requested it
// is told: directly once per attempt, and with an event once per reason.
func (r *Runner) notMerged(ctx context.Context, t work.Task, cause error) {
	if r.trouble(ctx, t, cause) < 2 {
		return
	}
	why := "not merged yet: " + strings.TrimRight(cause.Error(), ".") + ". It is retried automatically, eventually every five minutes"
	changed := false
	_, err := r.Tasks.Change(ctx, t.ID, func(now *work.Task, at time.Time) ([]work.Event, error) {
		if changed = now.State == work.Verifying && now.Attempt == t.Attempt && now.Why != why; !changed {
			return nil, nil
		}
		now.Why = why
		return []work.Event{{At: at, Type: work.EventMergeDelayed, Project: t.Project, Task: t.ID, By: system, From: now.State, To: now.State, Text: why}}, nil
	})
	if err == nil && changed {
		err = r.Tell(ctx, t, fmt.Sprintf("Task %s of project %s is finished, but %s.", t.ID, t.Project, why), fmt.Sprintf("merge/%s/%d", t.ID, t.Attempt))
	}
	if err != nil && ctx.Err() == nil {
		r.Log.Warn("nobody could be told that a task is not merged: "+err.Error(), "component", "work", "event", "task_delay_not_told", "task", t.ID)
	}
}

// trouble schedules a retry, at increasing intervals, and returns how often it has failed.
func (r *Runner) trouble(ctx context.Context, t work.Task, err error) (times int) {
	if ctx.Err() != nil {
		return 0
	}
	r.mu.Lock()
	l := r.late[t.ID]
	l.times++
	l.until = r.Now().Add(work.Backoff(tryAgain, l.times))
	r.late[t.ID] = l
	r.mu.Unlock()
	r.Log.Warn("a finished task waits: "+err.Error(), "component", "work", "event", "task_not_merged", "task", t.ID, "again", l.until)
	return l.times
}

func (r *Runner) withoutRepo(ctx context.Context, t work.Task, last bool) (work.Step, string, error) {
	if last {
		if why, err := r.stopped(ctx, t); err != nil || why != "" {
			return work.MergeFailed, why, err
		}
	}
	if !t.Approval {
		return work.VerifyPassed, "", nil
	}
	yes, err := r.approved(ctx, t)
	if err != nil || yes {
		return work.VerifyPassed, "", err
	}
	return work.NeedsApproval, askWords(t), nil
}

// askWords says what a person can do about a result that waits for
// approval. The names of the tools follow, for models.
func askWords(t work.Task) string {
	return "the result waits for approval: approve the task, or reopen it and say what is wrong." + work.InTerminal + "chorus task approve " + t.ID + " (tools: approve_task, reopen_with_feedback)"
}

// approved reports whether somebody approved the attempt's result.
func (r *Runner) approved(ctx context.Context, t work.Task) (bool, error) {
	events, err := r.Tasks.Events(ctx, work.EventFilter{Task: t.ID, Limit: 50})
	if err != nil {
		return false, err
	}
	for _, e := range events {
		if e.To == work.Verifying && e.Step != work.ConflictResolved { // the approval came before the conflict
			return e.Step == work.Approved, nil
		}
	}
	return false, nil
}

// bring commits, asks and merges. An empty step means that there is nothing to move yet.
func (r *Runner) bring(ctx context.Context, t work.Task, last bool, result *work.Result) (work.Step, string, error) {
	repo, known, err := r.open(ctx, t.Project, t.Repo)
	if errors.As(err, new(*gitrepo.Error)) {
		return refusal(err)
	}
	if err != nil {
		return work.MergeFailed, err.Error(), nil
	}
	want, err := r.tree(ctx, t)
	if err != nil {
		return "", "", err
	}
	m, begun, err := r.Tasks.PreparedMerge(ctx, t.ID, t.Attempt)
	if err != nil {
		return "", "", err
	}
	if begun { // a process that was killed got this far
		state, err := repo.State(ctx, prepared(m))
		if err != nil {
			return "", "", err
		}
		if state == gitrepo.Merged {
			return work.VerifyPassed, "", nil
		}
	}
	head, err := r.commit(ctx, repo, known, t, want, result)
	if err != nil {
		return refusal(err)
	}
	if !last {
		return work.VerifyPassed, "", nil // the last step of the plan merges everybody's work
	}
	if why, err := r.stopped(ctx, t); err != nil || why != "" {
		return work.MergeFailed, why, err
	}
	unchanged := len(result.Files) == 0
	if t.Approval {
		yes, err := r.approved(ctx, t)
		if err != nil {
			return "", "", err
		}
		switch {
		case !yes && unchanged:
			return work.NeedsApproval, askWords(t), nil
		case !yes:
			return r.askForYes(ctx, repo, known, t, want)
		}
	}
	if unchanged {
		return work.VerifyPassed, "", nil // there is nothing to merge
	}
	return r.merge(ctx, repo, known, t, head)
}

// refusal returns the step for an error from git.
func refusal(err error) (work.Step, string, error) {
	var e *gitrepo.Error
	if !errors.As(err, &e) {
		return "", "", err
	}
	switch {
	case errors.Is(err, gitrepo.ErrUnreachable), errors.Is(err, gitrepo.ErrTimeout), errors.Is(err, gitrepo.ErrInUse):
		return "", "", err // it may work later
	case errors.Is(err, gitrepo.ErrConflict):
		return work.MergeFailed, work.ConflictWords + " in " + strings.Join(e.Files, ", ") + ": " + e.Text, nil
	case errors.Is(err, gitrepo.ErrDirty):
		why := e.Text
		if e.Command != "" {
			why += ": " + e.Command
		}
		return work.NeedsApproval, why, nil
	default:
		return work.MergeFailed, e.Text, nil
	}
}

// commit commits what the worker left and determines what it changed.
func (r *Runner) commit(ctx context.Context, repo *gitrepo.Repo, known work.Repo, t work.Task, want *work.Worktree, result *work.Result) (head string, err error) {
	tree, err := repo.Add(ctx, want.Path, want.Branch, known.Branch)
	if err != nil {
		return "", err
	}
	defer tree.Close()
	if _, err := tree.Commit(ctx, gitrepo.Commit{Branch: want.Branch, Message: "agent: " + t.Title, At: t.Moved, Trailers: trailers(t), Author: gitrepo.Person{Name: t.Agent, Email: t.Agent + "@chorus.localhost"}}); err != nil {
		return "", err
	}
	files, err := repo.ChangedFiles(ctx, known.Branch, want.Branch)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		result.Files = append(result.Files, f.Path)
	}
	return want.Branch, nil
}

func trailers(t work.Task) []gitrepo.Trailer {
	return []gitrepo.Trailer{{Key: "Task-Id", Value: t.ID}, {Key: "Agent", Value: t.Agent}}
}

// askForYes creates a pull request if the repository has a place for them, or asks for approval.
func (r *Runner) askForYes(ctx context.Context, repo *gitrepo.Repo, known work.Repo, t work.Task, want *work.Worktree) (work.Step, string, error) {
	ask := askWords(t)
	if repo.Kind() != gitrepo.KindClone {
		return work.NeedsApproval, ask, nil
	}
	tree, err := repo.Tree(want.Path)
	if err != nil {
		return refusal(err)
	}
	if _, err := tree.Push(ctx, want.Branch); err != nil {
		return work.NeedsApproval, ask + " (no pull request: " + err.Error() + ")", nil
	}
	owner, err := r.owner(ctx, t)
	if err != nil {
		return "", "", err
	}
	body := fmt.Sprintf("Pull request for task `%s`.\n\n%s", owner.ID, oneParagraph(owner.Description))
	pr, err := repo.CreatePR(ctx, gitrepo.NewPull{Head: want.Branch, Base: known.Branch, Title: owner.Title, Body: body})
	if ctx.Err() != nil {
		return "", "", ctx.Err() // the next process asks gh whether it was created
	}
	if err != nil {
		return work.NeedsApproval, ask + " (no pull request: " + err.Error() + ")", nil
	}
	_, err = r.Tasks.Change(ctx, t.ID, func(now *work.Task, _ time.Time) ([]work.Event, error) {
		now.PR = pr.URL
		return nil, nil
	})
	return work.PRCreated, "merge " + pr.URL + ", or approve the task", err
}

func prepared(m work.Merge) gitrepo.Prepared {
	return gitrepo.Prepared{Target: m.Target, Base: m.Base, Head: m.Head, OID: m.OID}
}

// merge merges a branch into the repository's own, only once: it records what it will do before it does it.
func (r *Runner) merge(ctx context.Context, repo *gitrepo.Repo, known work.Repo, t work.Task, head string) (work.Step, string, error) {
	owner, err := r.owner(ctx, t)
	if err != nil {
		return "", "", err
	}
	for range mergeTries {
		p, err := repo.Prepare(ctx, gitrepo.MergeRequest{Target: known.Branch, Head: head, At: t.Moved, Message: fmt.Sprintf("Merge task %s: %s", owner.ID, owner.Title), Trailers: trailers(t), By: us})
		if err != nil {
			return refusal(err)
		}
		if err := r.Tasks.PrepareMerge(ctx, work.Merge{Task: t.ID, Attempt: t.Attempt, Target: p.Target, Head: p.Head, Base: p.Base, OID: p.OID, At: t.Moved}); err != nil {
			return "", "", err
		}
		err = repo.Apply(ctx, p)
		switch {
		case err == nil:
			return work.VerifyPassed, "", nil
		case !errors.Is(err, gitrepo.ErrMoved):
			return refusal(err)
		}
	}
	return "", "", fmt.Errorf("the branch %s moves faster than it can be merged into", known.Branch)
}

// lookAtPull moves a task whose pull request was merged or closed.
func (r *Runner) lookAtPull(ctx context.Context, t work.Task) (moved bool) {
	number := pullNumber(t.PR)
	if number == 0 {
		return false
	}
	repo, _, err := r.open(ctx, t.Project, t.Repo)
	if err != nil {
		r.trouble(ctx, t, err)
		return false
	}
	pr, err := repo.PRState(ctx, number)
	if err != nil {
		r.trouble(ctx, t, err)
		return false
	}
	step, why := work.Step(""), ""
	switch pr.State {
	case gitrepo.PullMerged:
		step = work.PRMerged
	case gitrepo.PullClosed:
		step, why = work.PRClosed, "its pull request was closed without being merged"
	default:
		return false
	}
	_, err = r.Tasks.Change(ctx, t.ID, func(now *work.Task, at time.Time) ([]work.Event, error) {
		if now.State != work.AwaitingApproval || now.Attempt != t.Attempt {
			return nil, nil
		}
		e, err := now.Take(step, system, at)
		now.Why = why
		return []work.Event{e}, err
	})
	if err != nil {
		r.trouble(ctx, t, err)
	}
	return err == nil
}

func pullNumber(url string) (n int) {
	at := strings.LastIndex(url, "/pull/")
	if at < 0 {
		return 0
	}
	_, _ = fmt.Sscanf(url[at:], "/pull/%d", &n) // anything else has no number
	return n
}

// clean removes the checkouts and branches of completed or deleted tasks.
// Others stay, because somebody may want to look at them.
func (r *Runner) clean(ctx context.Context) error {
	list, err := r.Tasks.Worktrees(ctx, "")
	if err != nil {
		return err
	}
	for _, w := range list {
		t, err := r.Tasks.Task(ctx, w.Task)
		gone := errors.Is(err, journal.ErrUnknown)
		if err != nil && !gone {
			return err
		}
		if !gone && t.State != work.Completed || r.busy(w.Task) || r.after(w.Task).After(r.Now()) {
			continue
		}
		t.ID, t.Project = w.Task, w.Project
		if err := r.startHere(ctx, t, func(ctx context.Context, t work.Task) bool { r.remove(ctx, w); return false }); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) remove(ctx context.Context, w work.Worktree) {
	if t, err := r.Tasks.Task(ctx, w.Task); err == nil && t.State != work.Completed {
		return // somebody wants it after all
	}
	if err := r.removeTree(ctx, w); err != nil {
		r.trouble(ctx, work.Task{ID: w.Task}, fmt.Errorf("its checkout and branch are not removed yet: %w", err))
	}
}

// removeTree removes a checkout and its branch, and then their record, so that a failed removal is retried.
func (r *Runner) removeTree(ctx context.Context, w work.Worktree) error {
	repo, known, err := r.open(ctx, w.Project, w.Repo)
	if errors.Is(err, errNoRepo) || errors.Is(err, gitrepo.ErrNotARepository) {
		return r.Tasks.RemoveWorktree(ctx, w.Task) // there is nothing to remove it from
	}
	if err != nil {
		return err
	}
	if err := repo.Remove(ctx, w.Path); err != nil {
		return err
	}
	if w.Branch != known.Branch {
		err := repo.DeleteBranch(ctx, w.Branch)
		if errors.Is(err, gitrepo.ErrInUse) || errors.Is(err, gitrepo.ErrDenied) || errors.Is(err, gitrepo.ErrRejected) { // somebody is using it, or the remote keeps it
			r.Log.Info("the branch of a task stays: "+err.Error(), "component", "work", "event", "branch_stays", "task", w.Task)
		} else if err != nil {
			return err
		}
	}
	return r.Tasks.RemoveWorktree(ctx, w.Task)
}

// Diff returns what a task changed: what was merged, or the current state of its checkout.
func (r *Runner) Diff(ctx context.Context, t work.Task, limit int) (work.Changes, error) {
	repo, known, err := r.open(ctx, t.Project, t.Repo)
	if err != nil {
		return work.Changes{}, err
	}
	var d gitrepo.Diff
	if t.State == work.Completed {
		m, merged, err := r.mergeOf(ctx, t)
		if err != nil {
			return work.Changes{}, err
		}
		if merged {
			d, err = repo.Diff(ctx, m.Base, m.OID, limit)
			return shown(known.Branch, d, err)
		}
	}
	want, err := r.tree(ctx, t)
	if err != nil {
		return work.Changes{}, err
	}
	tree, err := repo.Tree(want.Path)
	if err != nil {
		return work.Changes{}, err
	}
	d, err = tree.Diff(ctx, known.Branch, limit)
	return shown(known.Branch, d, err)
}

// mergeOf returns the merge that contains a task's work: its own, that of the task that resolved
// its conflict, or that of the last step of the plan that it produced or belongs to.
func (r *Runner) mergeOf(ctx context.Context, t work.Task) (m work.Merge, merged bool, err error) {
	if m, merged, err = r.Tasks.PreparedMerge(ctx, t.ID, t.Attempt); err != nil || merged {
		return m, merged, err
	}
	resolved, err := r.Tasks.List(ctx, work.Filter{Resolves: t.ID, State: work.Completed, Newest: true, Limit: 1})
	for _, other := range resolved {
		if m, merged, err = r.Tasks.PreparedMerge(ctx, other.ID, other.Attempt); err != nil || merged {
			return m, merged, err
		}
	}
	if err != nil {
		return m, false, err
	}
	steps, err := r.Tasks.List(ctx, work.Filter{Parent: ownerID(t), State: work.Completed, Limit: 1000})
	for i := len(steps) - 1; i >= 0 && err == nil && !merged; i-- {
		m, merged, err = r.Tasks.PreparedMerge(ctx, steps[i].ID, steps[i].Attempt)
	}
	return m, merged, err
}

func shown(base string, d gitrepo.Diff, err error) (work.Changes, error) {
	out := work.Changes{Base: base, Text: d.Text, Truncated: d.Truncated}
	for _, f := range d.Files {
		out.Files = append(out.Files, f.Path)
	}
	return out, err
}
