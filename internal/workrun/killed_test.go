package workrun_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/store/tasks"
	"chorus/internal/work"
)

// dying is the store of a process that is killed after a number of its transactions: that one is written, and nothing comes after it.
type dying struct {
	*tasks.Tasks
	mu   sync.Mutex
	left int
}

// after counts a transaction that was written; it fails in the process that is killed then.
func (d *dying) after(err error) error {
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left <= 0 {
		return errKilled
	}
	return nil
}

// dead reports whether the process was killed.
func (d *dying) dead() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left <= 0 {
		return errKilled
	}
	return nil
}

func (d *dying) Change(ctx context.Context, id string, change func(*work.Task, time.Time) ([]work.Event, error)) (work.Task, error) {
	if err := d.dead(); err != nil {
		return work.Task{}, err
	}
	t, err := d.Tasks.Change(ctx, id, change)
	return t, d.after(err)
}

func (d *dying) Assign(ctx context.Context, a work.Assignment, slots int, deadline time.Duration, dir string, tree *work.Worktree) (work.Task, error) {
	if err := d.dead(); err != nil {
		return work.Task{}, err
	}
	t, err := d.Tasks.Assign(ctx, a, slots, deadline, dir, tree)
	return t, d.after(err)
}

func (d *dying) SetWorktree(ctx context.Context, w work.Worktree) error {
	if err := d.dead(); err != nil {
		return err
	}
	return d.after(d.Tasks.SetWorktree(ctx, w))
}

func (d *dying) RemoveWorktree(ctx context.Context, task string) error {
	if err := d.dead(); err != nil {
		return err
	}
	return d.after(d.Tasks.RemoveWorktree(ctx, task))
}

func (d *dying) PrepareMerge(ctx context.Context, m work.Merge) error {
	if err := d.dead(); err != nil {
		return err
	}
	return d.after(d.Tasks.PrepareMerge(ctx, m))
}

func (d *dying) Finish(ctx context.Context, r work.Result, step work.Step, merged bool, by, why string) (work.Task, error) {
	if err := d.dead(); err != nil {
		return work.Task{}, err
	}
	t, err := d.Tasks.Finish(ctx, r, step, merged, by, why)
	return t, d.after(err)
}

func (d *dying) FindPlan(ctx context.Context, p work.Proposal, r work.Result, by, why string) (work.Task, error) {
	if err := d.dead(); err != nil {
		return work.Task{}, err
	}
	t, err := d.Tasks.FindPlan(ctx, p, r, by, why)
	return t, d.after(err)
}

func (d *dying) Wake(ctx context.Context, now time.Time) (time.Time, error) {
	if err := d.dead(); err != nil {
		return time.Time{}, err
	}
	return d.Tasks.Wake(ctx, now)
}

// The process is killed after its first transaction, after its second, and so on until nothing is left to do: whatever it had begun is
// finished by the next one, once, and nothing is left behind.
func TestKilledAfterEveryTransaction(t *testing.T) {
	t.Parallel()
	for after := 1; ; after++ {
		if killedAfter(t, after) {
			if after < 10 {
				t.Errorf("only %d transactions were seen", after)
			}
			return
		}
	}
}

// killedAfter lets a process do a plan of two steps and a task that waits for a yes until it is killed, and then another one finish.
// It reports whether the first one came to the end of everything.
func killedAfter(t *testing.T, after int) (whole bool) {
	h := newHome(t)
	h.worker = h.planner("## Phase 1: One\nx\n## Phase 2: Two\ny\n")
	parent, plain := h.task("Dark mode", nil), h.task("after", func(n *work.NewTask) { n.Approval = true })
	d := &dying{Tasks: h.queue, left: after}
	h.Runner.Tasks = d
	rounds := func() bool {
		quiet := 0
		for range 60 {
			next, err := h.Round(t.Context())
			h.Wait()
			if err != nil && d.dead() == nil {
				t.Fatalf("killed after %d: %v", after, err)
			}
			h.answer(parent.ID, plain.ID)
			done := h.state(parent.ID).State == work.Completed && h.state(plain.ID).State == work.Completed
			if trees, err := h.queue.Worktrees(t.Context(), ""); err != nil {
				t.Fatal(err)
			} else if done = done && len(trees) == 0; done {
				if quiet++; quiet > 1 {
					return true
				}
			}
			if d.dead() != nil && h.Runner.Tasks == d {
				return false
			}
			h.mu.Lock()
			if next.After(h.now) {
				h.now = next
			}
			h.mu.Unlock()
		}
		return false
	}
	if whole = rounds(); !whole {
		h.restart(h.Home)
		if !rounds() {
			t.Fatalf("killed after %d: the plan is %s (%s), the task %s (%s)", after, h.state(parent.ID).State, h.state(parent.ID).Why, h.state(plain.ID).State, h.state(plain.ID).Why)
		}
	}
	if m := h.merges(); len(m) != 2 {
		t.Errorf("killed after %d: merges %q", after, m)
	}
	if steps, err := h.queue.List(t.Context(), work.Filter{Parent: parent.ID, All: true, Limit: 10}); err != nil || len(steps) != 2 {
		t.Errorf("killed after %d: %d steps, %v", after, len(steps), err)
	}
	for _, name := range []string{"One.txt", "Two.txt", "after.txt"} {
		if _, err := os.Stat(filepath.Join(h.repo, name)); err != nil {
			t.Errorf("killed after %d: %v", after, err)
		}
	}
	if got := h.git("-C", h.repo, "branch", "--format=%(refname:short)"); got != "main" {
		t.Errorf("killed after %d: branches %s", after, strings.ReplaceAll(got, "\n", " "))
	}
	for key, n := range h.said {
		if !strings.HasSuffix(key, "/1") {
			t.Errorf("killed after %d: the attempt %s was made, %d times", after, key, n)
		}
	}
	return whole
}

// answer says yes to whatever waits for one.
func (h *home) answer(ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		switch h.state(id).State {
		case work.AwaitingPlanApproval:
			h.approve(id)
		case work.AwaitingApproval:
			h.step(id, work.Approved)
		}
	}
}
