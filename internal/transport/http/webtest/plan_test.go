package webtest

import (
	"os/exec"
	"testing"

	"chorus/internal/operations"
)

// A plan is read on the task's page, sent back with words, and approved; its steps are the task's subtasks, and all of it is merged.
func TestPlanOnItsPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "begin"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	h := newServer(t, "model: demo/script", "permissions: open")
	ops := h.app.Service.Operations()
	if _, err := operations.CreateProject.Call(t.Context(), ops, h.owner, operations.NewProject{Name: "Site", Repo: dir}); err != nil {
		t.Fatal(err)
	}
	made, err := operations.CreateTask.Call(t.Context(), ops, h.owner, operations.NewTask{Title: "Dark mode", Project: "site",
		Description: `!call write {"path":".chorus/plan.md","content":"# Dark mode\n\nUse <b>variables</b>.\n\n## Phase 1: Colours\n!call write {\"path\":\"colours.txt\",\"content\":\"c\"}\n\n## Phase 2: Switch\n!call write {\"path\":\"switch.txt\",\"content\":\"s\"}\n"}`})
	if err != nil {
		t.Fatal(err)
	}
	p := h.signedIn()
	p.desktop()
	p.visit("/work/" + made.ID)
	p.until(`[...document.querySelectorAll(".plan li")].map((l) => l.querySelector("summary")?.textContent ?? l.textContent).join() === "Colours,Switch"`)
	p.waitForText("Use <b>variables</b>.")
	p.look("plan")
	p.write("#plan ~ form textarea", "Say more about the colours")
	p.click("button[value=reject-plan]")
	p.waitForText("Say more about the colours")
	p.until(`document.querySelector("h1 + p .tag")?.textContent === "awaiting plan approval" && document.querySelector("button[value=approve]")?.textContent === "Approve the plan"`)
	p.click("button[value=approve]")
	p.until(`document.querySelector("h1 + p .tag")?.textContent === "completed"`)
	p.until(`document.querySelector(".facts")?.innerText.includes("Switch completed")`)
	p.phone()
	p.fits("a task with a plan on a phone")
	out, err := exec.CommandContext(t.Context(), "git", "-C", dir, "ls-tree", "--name-only", "main").CombinedOutput()
	if err != nil || string(out) != "colours.txt\nswitch.txt\n" {
		t.Errorf("%s %v", out, err)
	}
}
