package workrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"chorus/internal/journal"
	"chorus/internal/plainfile"
	"chorus/internal/work"
)

// maxPlan is how much of a plan is read.
const maxPlan = 400_000

// planFiles are where workers leave plans. Those of the first group are always plans,
// and are removed when their steps begin. Others count only if their text says that it
// is a plan, since they may be what the task was about.
var (
	ownPlanFiles   = []string{".chorus/plan.md", ".claude/plan.md"}
	otherPlanFiles = []string{"plan.md", "PLAN.md", "docs/plan.md", "plans/*.md", "docs/plans/*.md"}
)

// findPlan checks whether an attempt produced a plan, and if so lets its task
// wait for approval. Steps of plans produce no plans.
func (r *Runner) findPlan(ctx context.Context, t work.Task, result work.Result) (found bool, err error) {
	if t.Parent != "" {
		return false, nil
	}
	before, err := r.Tasks.PlanOf(ctx, t.ID)
	if err == nil && before.Attempt == t.Attempt || err != nil && !errors.Is(err, journal.ErrUnknown) {
		return false, err // it was already decided
	}
	p, found, err := r.readPlan(ctx, t, result.Summary)
	if err != nil || !found {
		return false, err
	}
	p.Task, p.Attempt = t.ID, t.Attempt
	steps := fmt.Sprintf("%d steps", len(p.Steps))
	if len(p.Steps) == 1 {
		steps = "one step"
	}
	_, err = r.Tasks.FindPlan(ctx, p, result, system, fmt.Sprintf("the plan (%s) waits for approval: approve it, or say what should be planned differently.%schorus task plan %s shows it, chorus task approve-plan %s approves it (tools: approve_plan, reject_plan)", steps, work.InTerminal, t.ID, t.ID))
	return err == nil, err
}

// readPlan finds a plan in what a task changed, or in its worker's answer.
func (r *Runner) readPlan(ctx context.Context, t work.Task, answer string) (p work.Proposal, found bool, err error) {
	dir, files, err := r.changed(ctx, t)
	if err != nil {
		return p, false, err
	}
	for _, pattern := range slices.Concat(ownPlanFiles, otherPlanFiles) {
		for _, file := range files {
			if fits, err := path.Match(pattern, file); err != nil || !fits {
				continue
			}
			text, err := readFile(dir, file)
			if err != nil {
				r.Log.Info("what looks like a plan cannot be read: "+err.Error(), "component", "work", "event", "plan_unreadable", "task", t.ID)
				continue
			}
			if o, ok := work.ReadOutline(text); ok && (o.Explicit || t.Type == "plan" || slices.Contains(ownPlanFiles, file)) {
				return work.Proposal{Source: file, Text: text, Outline: o}, true, nil
			}
		}
	}
	if o, ok := work.ReadOutline(answer); ok && len(o.Steps) > 1 && (o.Explicit || t.Type == "plan") {
		return work.Proposal{Source: work.Answer, Text: answer, Outline: o}, true, nil
	}
	return p, false, nil
}

// changed returns the files that a task has changed or added, and their folder.
func (r *Runner) changed(ctx context.Context, t work.Task) (dir string, files []string, err error) {
	if t.Repo == "" {
		dir = r.dir(t)
		for _, pattern := range slices.Concat(ownPlanFiles, otherPlanFiles) {
			found, err := fs.Glob(os.DirFS(dir), pattern)
			if err != nil {
				return dir, nil, err
			}
			files = append(files, found...)
		}
		return dir, files, nil
	}
	want, err := r.tree(ctx, t)
	if err != nil {
		return "", nil, err
	}
	repo, known, err := r.open(ctx, t.Project, t.Repo)
	if err != nil {
		return want.Path, nil, nil // merging will report what is wrong with it
	}
	tree, err := repo.Tree(want.Path)
	if err != nil {
		return want.Path, nil, nil
	}
	list, err := tree.ChangedFiles(ctx, known.Branch)
	if err != nil {
		return want.Path, nil, nil
	}
	for _, f := range list {
		files = append(files, f.Path)
	}
	return want.Path, files, nil
}

// readFile reads a file that an agent left. It follows no link out of the folder and never blocks.
func readFile(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, _, err := plainfile.OpenIn(root, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPlan))
	return string(data), err
}

// dropPlanFile removes a plan from the checkout of its steps: it has become
// tasks, and would otherwise be merged with their work.
func (r *Runner) dropPlanFile(ctx context.Context, t work.Task, dir string) error {
	if t.Parent == "" {
		return nil
	}
	p, err := r.Tasks.PlanOf(ctx, t.Parent)
	if errors.Is(err, journal.ErrUnknown) || err == nil && !slices.Contains(ownPlanFiles, p.Source) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := readFile(dir, p.Source)
	if err != nil || text != p.Text {
		return nil // it is gone, or somebody replaced it
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Remove(p.Source)
}

// owner returns the task whose checkout and branch a task uses: the steps of a plan share their parent's.
func (r *Runner) owner(ctx context.Context, t work.Task) (work.Task, error) {
	if t.Parent == "" {
		return t, nil
	}
	parent, err := r.Tasks.Task(ctx, t.Parent)
	switch {
	case errors.Is(err, journal.ErrUnknown), err == nil && parent.Repo != t.Repo:
		return t, nil
	case err != nil:
		return t, err
	}
	return parent, nil
}

// ownerID returns the id of the task whose folder a task uses, without reading the store.
func ownerID(t work.Task) string {
	return cmp.Or(t.Parent, t.ID)
}

// lastStep reports whether a task's end merges the work: if it is not a
// step of a plan, or its siblings are all completed.
func (r *Runner) lastStep(ctx context.Context, t work.Task) (bool, error) {
	if t.Parent == "" {
		return true, nil
	}
	siblings, err := r.Tasks.List(ctx, work.Filter{Parent: t.Parent, All: true, Limit: 1000})
	if err != nil {
		return false, err
	}
	for _, s := range siblings {
		if s.ID != t.ID && s.State != work.Completed {
			return false, nil
		}
	}
	return true, nil
}

// stopped says why the last step of a plan does not merge the work, or returns "".
func (r *Runner) stopped(ctx context.Context, t work.Task) (string, error) {
	if t.Parent == "" {
		return "", nil
	}
	parent, err := r.Tasks.Task(ctx, t.Parent)
	if err != nil || parent.State == work.InProgress {
		return "", err
	}
	return fmt.Sprintf("nothing was merged, since task %s, whose plan this is the last step of, is %s; restart it to continue", parent.ID, parent.State), nil
}

// stopStray stops running steps whose parent task was stopped.
func (r *Runner) stopStray(ctx context.Context) error {
	list, err := r.Tasks.StrayRuns(ctx)
	for _, t := range list {
		if err := r.Abort(ctx, t.Thread, system); err != nil {
			return err
		}
	}
	return err
}
