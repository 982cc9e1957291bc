package workrun_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/work"
)

// quarrel is a worker of tasks that all change the same line, and of those that resolve their conflicts: with merges true by merging, else
// by writing what both wanted by hand.
func (h *home) quarrel(merges bool) func(work.Task, string) chat.RunEnded {
	return func(t work.Task, dir string) chat.RunEnded {
		git := func(args ...string) {
			cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
			_ = cmd.Run() // a merge with conflicts fails
		}
		if t.Resolves == "" {
			h.write(filepath.Join(dir, "README.md"), t.Title+"\n")
			return done()
		}
		if merges {
			git("merge", h.state(t.Resolves).Branch)
		}
		h.write(filepath.Join(dir, "README.md"), "both\n")
		git("add", ".")
		git("commit", "-q", "--no-edit", "-m", "both")
		return done()
	}
}

// onConflict says what becomes of a conflict.
func (h *home) onConflict(what string) {
	h.t.Helper()
	_, err := h.queue.ChangeProject(h.t.Context(), "site", func(p *work.Project) (work.Event, error) {
		p.OnConflict = what
		return work.Event{Type: "project.edited"}, nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// conflicted is a task whose branch conflicts with what was merged while it was worked on.
func (h *home) conflicted() work.Task {
	h.t.Helper()
	first := h.task("theirs", nil)
	work1 := h.worker
	h.worker = func(t work.Task, dir string) chat.RunEnded {
		if t.ID == first.ID && t.Attempt == 1 {
			h.write(filepath.Join(h.repo, "README.md"), "ours\n")
			h.git("-C", h.repo, "commit", "-q", "-a", "-m", "ours")
		}
		return work1(t, dir)
	}
	return first
}

func (h *home) resolvers(id string) []work.Task {
	h.t.Helper()
	list, err := h.queue.List(h.t.Context(), work.Filter{Resolves: id, All: true, Limit: 10})
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// A conflict waits for a person, who can have a task made that resolves it: once, however often they ask.
func TestAConflictIsResolvedByAnotherTask(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worker = h.quarrel(true)
	first := h.conflicted()
	after := h.task("after", func(n *work.NewTask) { n.Needs = []string{first.ID} })
	first = h.settle(first.ID, work.Blocked)
	if !first.Conflicted() || !strings.Contains(first.Why, "README.md") || !strings.Contains(first.Why, "chorus task resolve-conflict "+first.ID) || len(h.resolvers(first.ID)) > 0 {
		t.Fatalf("%+v %v", first, h.resolvers(first.ID))
	}
	var made work.Task
	for range 2 {
		var err error
		if made, err = h.queue.Create(t.Context(), work.Resolution(first)); err != nil {
			t.Fatal(err)
		}
	}
	if list := h.resolvers(first.ID); len(list) != 1 || list[0].ID != made.ID || !strings.Contains(made.Description, "git merge "+first.Branch) || !strings.Contains(made.Description, "README.md") {
		t.Fatalf("%+v", list)
	}
	h.settle(after.ID, work.Completed) // it needs the first one
	first = h.settle(first.ID, work.Completed)
	if text, err := os.ReadFile(filepath.Join(h.repo, "README.md")); err != nil || string(text) != "after\n" {
		t.Errorf("%q %v", text, err)
	}
	if log := h.git("-C", h.repo, "log", "--format=%s", "--first-parent"); strings.Count(log, "Merge task") != 2 || strings.Contains(log, first.ID+": theirs\nMerge task "+first.ID) {
		t.Errorf("merged: %s", log)
	}
	if d, err := h.Diff(t.Context(), first, 10_000); err != nil || !strings.Contains(d.Text, "+both") {
		t.Errorf("%+v %v", d, err)
	}
	if r, err := h.queue.Results(t.Context(), first.ID); err != nil || len(r) != 1 || r[0].Kind != "" || len(r[0].Files) != 1 {
		t.Errorf("%+v %v", r, err)
	}
}

// A project can want such a task at once. It is made with the step that blocks the other one, so that a process that is killed leaves
// neither none nor two.
func TestAConflictIsResolvedAtOnce(t *testing.T) {
	t.Parallel()
	for kill := 1; ; kill++ {
		h := newHome(t)
		h.onConflict(work.ConflictTask)
		h.worker = h.quarrel(true)
		first := h.conflicted()
		d := &dying{Tasks: h.queue, left: kill}
		h.Runner.Tasks = d
		for range 30 {
			_, err := h.Round(t.Context())
			h.Wait()
			if d.dead() != nil {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		whole := d.dead() == nil
		h.restart(h.Home)
		now := h.settle(first.ID, work.Completed)
		list := h.resolvers(first.ID)
		if len(list) != 1 || list[0].State != work.Completed || now.Attempt != 1 {
			t.Fatalf("killed after %d: %+v, resolved by %+v", kill, now, list)
		}
		if text, err := os.ReadFile(filepath.Join(h.repo, "README.md")); err != nil || string(text) != "both\n" {
			t.Fatalf("killed after %d: %q %v", kill, text, err)
		}
		if whole {
			if kill < 8 {
				t.Errorf("only %d transactions were seen", kill)
			}
			return
		}
	}
}

// What was not merged is not said to be: a task that wrote the result by hand leaves the conflict, and no third one is made.
func TestAResolutionThatDoesNotMergeResolvesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.onConflict(work.ConflictTask)
	h.worker = h.quarrel(false)
	first := h.conflicted()
	for range 20 {
		if _, err := h.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.Wait()
	}
	now, list := h.state(first.ID), h.resolvers(first.ID)
	if len(list) != 1 || list[0].State != work.Completed || !now.Conflicted() || !strings.Contains(now.Why, "Task "+list[0].ID+" was to resolve it, but has not merged its branch") {
		t.Errorf("%s: %s, resolved by %+v", now.State, now.Why, list)
	}
}

// The last step of a plan brings everybody's work home: its conflict is resolved in the same way, and the plan goes on.
func TestAConflictOfAPlanIsResolved(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.onConflict(work.ConflictTask)
	planner, resolver := h.planner("## Phase 1: One\nx\n## Phase 2: Two\ny\n"), h.quarrel(true)
	h.worker = func(t work.Task, dir string) chat.RunEnded {
		switch {
		case t.Resolves != "":
			return resolver(t, dir)
		case t.Title == "Two":
			h.write(filepath.Join(dir, "README.md"), "theirs\n")
			h.write(filepath.Join(h.repo, "README.md"), "ours\n")
			h.git("-C", h.repo, "commit", "-q", "-a", "-m", "ours")
		}
		return planner(t, dir)
	}
	parent := h.task("Dark mode", nil)
	h.settle(parent.ID, work.AwaitingPlanApproval)
	h.approve(parent.ID)
	h.settle(parent.ID, work.Completed)
	for _, name := range []string{"One.txt", "Two.txt"} {
		if _, err := os.Stat(filepath.Join(h.repo, name)); err != nil {
			t.Error(err)
		}
	}
}
