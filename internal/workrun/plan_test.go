package workrun_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/work"
)

const threeSteps = "# Dark mode\n\nUse variables.\n\n## Phase 1: Colours\nMove the colours.\n\n## Phase 2: Switch\nAdd the switch.\n\n## Phase 3: Tests\nTest it.\n"

// planner is a worker that gives a plan, and carries out each step by writing a file.
func (h *home) planner(plan string) func(work.Task, string) chat.RunEnded {
	return func(t work.Task, dir string) chat.RunEnded {
		if t.Parent == "" && t.Title != "after" {
			if err := os.MkdirAll(filepath.Join(dir, ".chorus"), 0o700); err != nil {
				h.t.Error(err)
			}
			h.write(filepath.Join(dir, ".chorus", "plan.md"), plan)
			return done()
		}
		h.write(filepath.Join(dir, t.Title+".txt"), t.ID+"\n")
		return done()
	}
}

// planned is a task whose plan waits for a yes.
func (h *home) planned(with func(*work.NewTask)) work.Task {
	h.t.Helper()
	h.worker = h.planner(threeSteps)
	return h.settle(h.task("Dark mode", with).ID, work.AwaitingPlanApproval)
}

// approve says yes to a plan and gives its steps.
func (h *home) approve(id string) []work.Task {
	h.t.Helper()
	_, steps, err := h.queue.ApprovePlan(h.t.Context(), id, "local:ada")
	if err != nil {
		h.t.Fatal(err)
	}
	return steps
}

func (h *home) state(id string) work.Task {
	h.t.Helper()
	t, err := h.queue.Task(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return t
}

func (h *home) merges() []string {
	h.t.Helper()
	return strings.Split(h.git("-C", h.repo, "log", "--merges", "--format=%s"), "\n")
}

// step lets somebody move a task.
func (h *home) step(id string, step work.Step) {
	h.t.Helper()
	if _, err := h.queue.Change(h.t.Context(), id, func(t *work.Task, now time.Time) ([]work.Event, error) {
		e, err := t.Take(step, "local:ada", now)
		if step == work.AdminRestart {
			t.Retries, t.Why = 0, ""
		}
		return []work.Event{e}, err
	}); err != nil {
		h.t.Fatal(err)
	}
}

func TestAPlanBecomesAChainOnOneBranch(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	parent := h.planned(nil)
	if plan, err := h.queue.PlanOf(t.Context(), parent.ID); err != nil || len(plan.Steps) != 3 || plan.Source != ".chorus/plan.md" || !strings.Contains(parent.Why, "3 steps") {
		t.Fatalf("%+v, %v, %s", plan, err, parent.Why)
	}
	h.pass(time.Hour)
	if h.round(); h.state(parent.ID).State != work.AwaitingPlanApproval || strings.Contains(h.git("-C", h.repo, "log", "--format=%s"), "Merge") {
		t.Fatal("a plan goes on without a yes")
	}
	after := h.task("after", func(n *work.NewTask) { n.Needs = []string{parent.ID} })
	steps := h.approve(parent.ID)
	if _, _, err := h.queue.ApprovePlan(t.Context(), parent.ID, "local:ada"); err == nil {
		t.Error("a plan was approved twice")
	}
	if got := h.state(parent.ID).State; got != work.InProgress {
		t.Errorf("the parent is %s", got)
	}
	for i, s := range steps {
		needs, err := h.queue.Needs(t.Context(), s.ID)
		if want := map[bool]work.State{true: work.Ready, false: work.Defined}[i == 0]; err != nil || s.State != want || len(needs) != min(i, 1) || s.Priority != parent.Priority+i {
			t.Errorf("step %d: %+v needs %v, %v", i, s, needs, err)
		}
	}
	h.settle(after.ID, work.Completed)
	if got := h.state(parent.ID); got.State != work.Completed {
		t.Fatalf("the parent is %s (%s)", got.State, got.Why)
	}
	if m := h.merges(); len(m) != 2 || m[1] != "Merge task "+parent.ID+": Dark mode" {
		t.Errorf("merges: %q", m)
	}
	for _, name := range []string{"Colours.txt", "Switch.txt", "Tests.txt"} {
		if _, err := os.Stat(filepath.Join(h.repo, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(h.repo, ".chorus")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the plan was merged with the work", err)
	}
	for range 3 {
		h.round()
	}
	if got := h.git("-C", h.repo, "branch", "--format=%(refname:short)"); got != "main" {
		t.Errorf("branches are left: %s", got)
	}
	events := h.events(parent.ID, "task.completed")
	last := h.events(steps[2].ID, "task.completed")
	if len(events) != 1 || len(last) != 1 || events[0].ID != last[0].ID+1 || events[0].Step != work.PlanMerged {
		t.Errorf("the parent completed at %+v, its last step at %+v", events, last)
	}
	if diff, err := h.Diff(t.Context(), h.state(parent.ID), 10_000); err != nil || !strings.Contains(diff.Text, "Colours.txt") || !strings.Contains(diff.Text, "Tests.txt") {
		t.Errorf("the diff of the parent: %s, %v", diff.Text, err)
	}
}

func TestOnlyTheLastStepAsksForAYes(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	parent := h.planned(func(n *work.NewTask) { n.Approval = true })
	steps := h.approve(parent.ID)
	last := h.settle(steps[2].ID, work.AwaitingApproval)
	for _, s := range steps[:2] {
		if got := h.state(s.ID); got.State != work.Completed || got.Approval {
			t.Errorf("%s is %s", s.Title, got.State)
		}
	}
	h.step(last.ID, work.Approved)
	h.settle(last.ID, work.Completed)
	if got := h.state(parent.ID); got.State != work.Completed {
		t.Errorf("the parent is %s", got.State)
	}
}

func TestARejectedPlanIsMadeAnew(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	parent := h.planned(nil)
	if _, err := h.queue.RejectPlan(t.Context(), parent.ID, "local:ada", "Begin with the tests"); err != nil {
		t.Fatal(err)
	}
	h.worker = h.planner("## Phase 1: Tests\nx\n## Phase 2: Colours\ny\n")
	again := h.settle(parent.ID, work.AwaitingPlanApproval)
	if again.Attempt != 2 || !strings.Contains(again.Description, "Begin with the tests") {
		t.Errorf("%+v", again)
	}
	steps := h.approve(parent.ID)
	if len(steps) != 2 || steps[0].Title != "Tests" {
		t.Errorf("%+v", steps)
	}
	h.settle(parent.ID, work.Completed)
}

func TestWhatLooksLikeAPlanCanBeTheResult(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worker = func(_ work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "plan.md"), threeSteps)
		return done()
	}
	task := h.settle(h.task("Write a plan for the release", nil).ID, work.AwaitingPlanApproval)
	if _, err := h.queue.DeletePlan(t.Context(), task.ID, "local:ada"); err != nil {
		t.Fatal(err)
	}
	h.settle(task.ID, work.Completed)
	if _, err := os.Stat(filepath.Join(h.repo, "plan.md")); err != nil {
		t.Error(err)
	}
	// The next one finds it in the repository: it is not the next one's plan.
	h.worker = func(_ work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "other.txt"), "x")
		return done()
	}
	h.settle(h.task("Something else", nil).ID, work.Completed)
}

func TestPlansInAnswersAndFoldersAndWhatIsNone(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	answer := threeSteps
	h.Answer = func(_ context.Context, _ chat.ThreadID) (string, error) { return answer, nil }
	h.worker = func(work.Task, string) chat.RunEnded { return done() }
	parent := h.settle(h.task("Plan it", nil).ID, work.AwaitingPlanApproval)
	if plan, err := h.queue.PlanOf(t.Context(), parent.ID); err != nil || plan.Source != work.Answer {
		t.Errorf("%+v, %v", plan, err)
	}
	steps := h.approve(parent.ID) // its steps answer with a plan as well, which nobody wants
	h.settle(parent.ID, work.Completed)
	if _, err := h.queue.PlanOf(t.Context(), steps[0].ID); !errors.Is(err, journal.ErrUnknown) {
		t.Error("a step gave a plan", err)
	}
	for what, text := range map[string]string{"a report": "Done:\n\n1. I changed a.go\n2. I ran the tests\n", "a list of one": "## Phase 1: Everything\nx", "sections": "## Changed files\nmany files were changed here\n## Checks\nall of the checks were run\n"} {
		answer = text
		if got := h.settle(h.task(what, nil).ID, work.Completed); got.State != work.Completed {
			t.Error(what)
		}
	}
	// Without a repository the folder is looked at, and no link leads out of it.
	answer = "done"
	secret := filepath.Join(t.TempDir(), "secret.md")
	h.write(secret, threeSteps)
	h.worker = func(t work.Task, dir string) chat.RunEnded {
		if t.Parent == "" && os.Symlink(secret, filepath.Join(dir, "plan.md")) != nil {
			h.t.Error("no link")
		}
		return done()
	}
	h.settle(h.task("linked", func(n *work.NewTask) { n.Repo = "" }).ID, work.Completed)
	h.worker = h.planner(threeSteps)
	plain := h.settle(h.task("folder", func(n *work.NewTask) { n.Repo = "" }).ID, work.AwaitingPlanApproval)
	h.approve(plain.ID)
	h.settle(plain.ID, work.Completed)
	if found, err := filepath.Glob(filepath.Join(h.Home.TaskDir("site", plain.ID), "files", "*.txt")); err != nil || len(found) != 3 {
		t.Errorf("the steps do not share their folder: %v, %v", found, err)
	}
}

func TestAStepThatFailsStopsTheChainUntilSomebodyDecides(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	parent := h.planned(nil)
	steps := h.approve(parent.ID)
	fails := true
	good := h.planner(threeSteps)
	h.worker = func(t work.Task, dir string) chat.RunEnded {
		if fails && t.Title == "Switch" {
			return chat.RunEnded{Reason: chat.EndFailed, Error: &chat.Failure{Message: "no idea"}}
		}
		return good(t, dir)
	}
	h.settle(steps[1].ID, work.Blocked)
	if got := h.state(parent.ID); got.State != work.Blocked || !strings.Contains(got.Why, steps[1].ID) || !strings.Contains(got.Why, "no idea") {
		t.Errorf("the parent is %s: %s", got.State, got.Why)
	}
	if got := h.state(steps[2].ID); got.State != work.Defined {
		t.Errorf("the third step is %s", got.State)
	}
	stuck, err := work.Stuck(steps[1].ID, func(id string) ([]work.Task, error) { return h.queue.Dependents(t.Context(), id) })
	if err != nil || len(stuck) != 1 || stuck[0].ID != steps[2].ID {
		t.Errorf("stuck: %v, %v", stuck, err)
	}
	fails = false
	h.step(steps[1].ID, work.AdminRestart)
	if got := h.state(parent.ID); got.State != work.InProgress || got.Why != "" {
		t.Errorf("the parent is %s: %s", got.State, got.Why)
	}
	h.settle(parent.ID, work.Completed)
	if m := h.merges(); len(m) != 1 {
		t.Errorf("merges: %q", m)
	}
}

func TestASkippedLastStepLeavesTheMergeToTheParent(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	parent := h.planned(nil)
	steps := h.approve(parent.ID)
	good := h.planner(threeSteps)
	h.worker = func(t work.Task, dir string) chat.RunEnded {
		if t.Title == "Tests" {
			return chat.RunEnded{Reason: chat.EndDenied}
		}
		return good(t, dir)
	}
	h.settle(steps[2].ID, work.Blocked)
	h.step(steps[2].ID, work.AdminSkip)
	if got := h.state(parent.ID); got.State != work.Verifying {
		t.Fatalf("the parent is %s: %s", got.State, got.Why)
	}
	h.settle(parent.ID, work.Completed)
	if _, err := os.Stat(filepath.Join(h.repo, "Switch.txt")); err != nil || len(h.merges()) != 1 {
		t.Error("what the other steps did is not merged once", err, h.merges())
	}
}

func TestAStoppedPlanBeginsNoMoreSteps(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	parent := h.planned(nil)
	steps := h.approve(parent.ID)
	begun := 0
	good := h.planner(threeSteps)
	h.worker = func(t work.Task, dir string) chat.RunEnded {
		if begun++; t.Title == "Switch" && begun == 2 {
			return chat.RunEnded{} // it goes on
		}
		return good(t, dir)
	}
	h.settle(steps[1].ID, work.InProgress)
	h.step(parent.ID, work.AdminStop) // and the process is killed before it stops the step
	h.restart(h.Home)
	h.round()
	if got := h.state(steps[1].ID); got.State != work.Blocked {
		t.Errorf("the step that was on is %s", got.State)
	}
	if _, err := h.db.Commit(t.Context(), journal.Commit{Thread: steps[1].Thread, Events: []chat.Event{{Body: chat.RunEnded{Run: h.state(steps[1].ID).Run, Reason: chat.EndAborted}}}, Epoch: h.epoch(steps[1].Thread)}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		h.pass(time.Minute)
		h.round()
	}
	if got := h.state(parent.ID); got.State != work.Blocked || h.state(steps[2].ID).State != work.Defined || begun != 2 {
		t.Errorf("the parent is %s, %d steps were begun", got.State, begun)
	}
	if _, resumed, err := h.queue.ResumePlan(t.Context(), parent.ID, "local:ada"); err != nil || !resumed {
		t.Fatal(resumed, err)
	}
	h.settle(parent.ID, work.Completed)
	if m := h.merges(); len(m) != 1 {
		t.Errorf("merges: %q", m)
	}
}

func TestAStepOfACompletedPlanCanBeReopened(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	parent := h.planned(nil)
	steps := h.approve(parent.ID)
	h.settle(parent.ID, work.Completed)
	h.round()
	h.worker = func(t work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "Colours.txt"), "again\n")
		return done()
	}
	h.step(steps[0].ID, work.AdminRestart)
	if got := h.state(parent.ID); got.State != work.InProgress {
		t.Errorf("the parent is %s", got.State)
	}
	h.settle(steps[0].ID, work.Completed)
	text, err := os.ReadFile(filepath.Join(h.repo, "Colours.txt"))
	if got := h.state(parent.ID); got.State != work.Completed || string(text) != "again\n" || len(h.merges()) != 2 {
		t.Errorf("the parent is %s, the file %q, %v, merges %q", got.State, text, err, h.merges())
	}
}

func TestAPlanThatIsTooLongIsNotCarriedOutInPart(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "## Step %d: s%d\nx\n", i+1, i)
	}
	h.worker = h.planner(b.String())
	parent := h.settle(h.task("long", nil).ID, work.AwaitingPlanApproval)
	if _, _, err := h.queue.ApprovePlan(t.Context(), parent.ID, "local:ada"); err == nil || !strings.Contains(err.Error(), "60 steps") {
		t.Error(err)
	}
	if steps, err := h.queue.List(t.Context(), work.Filter{Parent: parent.ID, All: true, Limit: 100}); err != nil || len(steps) != 0 || h.state(parent.ID).State != work.AwaitingPlanApproval {
		t.Errorf("%d steps, %v", len(steps), err)
	}
}

func (h *home) epoch(thread chat.ThreadID) int64 {
	h.t.Helper()
	row, err := h.db.Thread(h.t.Context(), thread)
	if err != nil {
		h.t.Fatal(err)
	}
	return row.Epoch
}
