package webtest

import (
	"fmt"
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// A project's page, its graph and the workers: what they show, what their forms change, and that they fit.
func TestProjectPages(t *testing.T) {
	t.Parallel()
	h := newServer(t, "model: demo/script", "permissions: open", "prices:", "  demo/script: {input: 3, output: 15}")
	ops, ctx := h.app.Service.Operations(), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := operations.CreateProject.Call(ctx, ops, h.owner, operations.NewProject{Name: "My Site"})
	must(err)
	_, err = operations.WriteNote.Call(ctx, ops, h.owner, operations.NoteText{Title: "Release plan", Content: "# Release plan\n\nOn <b>Monday</b>.", Project: "my-site"})
	must(err)
	first, err := operations.CreateTask.Call(ctx, ops, h.owner, operations.NewTask{Title: "Write the words", Description: "```demo\nusage in=4200 out=300\nsay It is done\n```", Project: "my-site"})
	must(err)
	p := h.signedIn()
	p.desktop()
	p.visit("/work/" + first.ID)
	p.until(`document.querySelector("h1 + p .tag")?.textContent === "completed"`) // by itself
	p.until(`document.querySelector(".tasklog .said.agent")?.innerText.includes("It is done")`)
	p.look("task-done")
	_, err = operations.PauseProject.Call(ctx, ops, h.owner, operations.ProjectRef{ID: "my-site"})
	must(err)
	ids := []string{first.ID}
	for i, needs := range [][]int{{0}, {0}, {1, 2}, {3}, {3}, {}, {2}} {
		in := operations.NewTask{Title: fmt.Sprintf("Step %d <i>of</i> the way to a better page", i+2), Project: "my-site"}
		for _, n := range needs {
			in.Needs = append(in.Needs, ids[n])
		}
		made, err := operations.CreateTask.Call(ctx, ops, h.owner, in)
		must(err)
		ids = append(ids, made.ID)
	}
	_, err = operations.SetTaskStatus.Call(ctx, ops, h.owner, operations.TaskStatusChange{ID: ids[2], Status: "BLOCKED"})
	must(err)

	p.visit("/projects")
	p.click("td.main a")
	p.waitForText("No new tasks start")
	p.until(`document.querySelector("figure .chart .spent") && document.querySelector(".hbars meter")?.value > 0`)
	p.click("a[href*='note=release-plan']")
	p.waitForText("On <b>Monday</b>.")
	p.look("project")
	p.click("button[value=resume]")
	p.until(`document.querySelector("button[value=pause]")`)
	p.click("button[value=pause]")
	p.until(`document.querySelector("button[value=resume]")`)
	p.eval(`document.querySelector("input[name=most]").value = 5`)
	p.click("button[value=edit]")
	p.until(`document.querySelector("input[name=most]")?.defaultValue === "5"`)
	got, err := operations.GetProject.Call(ctx, ops, h.owner, operations.ProjectRef{ID: "my-site"})
	if err != nil || got.MaxRuns != 5 || got.Name != "My Site" {
		t.Errorf("%+v %v", got, err)
	}

	p.visit("/projects/my-site/graph")
	p.until(fmt.Sprintf(`document.querySelectorAll(".big-screen .graph .node").length === %d && document.querySelectorAll(".big-screen .graph .edge").length === 7`, len(ids)))
	p.look("graph")
	p.write("input[name=around]", ids[3])
	p.click(".filters button")
	p.until(fmt.Sprintf(`document.querySelector(".graph .around")?.id === %q && document.querySelectorAll(".big-screen .graph .node").length === 6`, ids[3]))
	p.visit("/projects/my-site/graph?open=yes")
	p.until(`document.querySelector(".graph .blocked") && !document.querySelector(".graph .completed") && document.querySelector(".graph").textContent.includes("needed 1 done")`)
	p.visit("/projects/my-site/graph")
	p.until(`document.querySelector(".graph .node")`)
	p.eval(fmt.Sprintf(`document.getElementById(%q).dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }))`, ids[3]))
	p.until(fmt.Sprintf(`location.pathname === "/work/%s"`, ids[3]))
	p.click("#edit summary")
	p.eval(`document.querySelector("#edit input[name=priority]").value = 7`)
	p.click("button[value=edit]")
	p.until(`document.querySelector(".facts dd")?.textContent === "7"`)
	p.look("task")
	p.visit("/workers")
	p.waitForText("0 of 2 busy")
	p.click("button[value=pause]")
	p.until(`document.querySelector("button[value=resume]")`)
	status, err := operations.GetWorkStatus.Call(ctx, ops, h.owner, operation.None{})
	if err != nil || !status.Paused {
		t.Errorf("%+v %v", status, err)
	}
	p.look("workers")
	p.phone()
	p.until(`innerWidth === 390`)
	for _, path := range []string{"/projects", "/projects/my-site", "/projects/my-site/graph", "/workers", "/work/" + first.ID} {
		p.visit(path)
		p.fits(path + " on a phone")
	}
	p.visit("/projects/my-site")
	p.look("project-phone")
	p.eval(`document.documentElement.dataset.theme = "dark"`)
	p.visit("/projects/my-site/graph")
	p.eval(`document.documentElement.dataset.theme = "dark"`)
	p.look("graph-phone-dark")
}
