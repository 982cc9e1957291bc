package webtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// board makes a paused project with a task in each of the states.
func (h *server) board(states ...string) map[string]string {
	h.Helper()
	must := func(err error) {
		h.Helper()
		if err != nil {
			h.Fatal(err)
		}
	}
	ops := h.app.Service.Operations()
	_, err := operations.CreateProject.Call(h.Context(), ops, h.owner, operations.NewProject{Name: "Site"})
	must(err)
	_, err = operations.PauseProject.Call(h.Context(), ops, h.owner, operations.ProjectRef{ID: "site"})
	must(err)
	ids := map[string]string{}
	for _, state := range states {
		made, err := operations.CreateTask.Call(h.Context(), ops, h.owner, operations.NewTask{Title: "Is " + state, Project: "site"})
		must(err)
		if ids[state] = made.ID; state != "READY" {
			_, err = operations.SetTaskStatus.Call(h.Context(), ops, h.owner, operations.TaskStatusChange{ID: made.ID, Status: state})
			must(err)
		}
	}
	return ids
}

// at is a place in an element.
func (t *tab) at(selector, where string) (x, y float64) {
	t.Helper()
	return t.number(fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().left + 30", selector)), t.number(fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().%s", selector, where))
}

func (t *tab) mouse(kind input.DispatchMouseEventType, x, y float64) {
	t.Helper()
	call(t, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1})
}

// drag moves a card to a column with the mouse.
func (t *tab) drag(card, column string) {
	t.Helper()
	t.take(card)
	t.put(column)
}

// take begins to drag a card.
func (t *tab) take(card string) {
	t.Helper()
	t.eval(fmt.Sprintf(`document.querySelector(%q).scrollIntoView({ block: "center", behavior: "instant" })`, card))
	x, y := t.at(card, "bottom - 4")
	// Without a screen the browser does not carry the drag on by itself: it is taken over once the page has begun it.
	call(t, input.SetInterceptDrags, input.SetInterceptDragsParams{Enabled: true})
	t.mouse(input.DispatchMouseEventTypeMousePressed, x, y)
	for _, further := range []float64{2, 6, 12, 20} { // a drag begins after some way
		t.mouse(input.DispatchMouseEventTypeMouseMoved, x+further, y+further/4)
	}
	t.until(`document.body.dataset.busy`)
}

// put drops what is dragged on a column.
func (t *tab) put(column string) {
	t.Helper()
	toX, toY := t.at("[data-column="+column+"]", "top + 60")
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver} {
		call(t, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: toX, Y: toY, Data: &input.DragData{Items: []*input.DragDataItem{}, DragOperationsMask: 16}})
	}
	t.until(fmt.Sprintf(`document.querySelector("[data-column=%s]").classList.contains("over")`, column))
	call(t, input.DispatchDragEvent, input.DispatchDragEventParams{Type: input.DispatchDragEventTypeDrop, X: toX, Y: toY, Data: &input.DragData{Items: []*input.DragDataItem{}, DragOperationsMask: 16}})
	t.mouse(input.DispatchMouseEventTypeMouseReleased, toX, toY)
	t.until(`!document.body.dataset.busy`)
}

// in waits until a task stands in a column.
func (t *tab) in(column, id string) {
	t.Helper()
	t.until(fmt.Sprintf(`document.querySelector("[data-column=%s] #card-%s")`, column, id))
}

// Cards are dragged to columns that the rules allow, by the mouse, by the keyboard and on a phone by their menus; what is not allowed is
// refused with a sentence; and what others do shows by itself.
func TestBoard(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	ids := h.board("READY", "BLOCKED", "FAILED", "COMPLETED", "AWAITING_APPROVAL", "WAITING_INPUT")
	p := h.signedIn()
	p.desktop()
	p.visit("/work?project=site")
	p.in("asking", ids["AWAITING_APPROVAL"])
	p.until(`!document.querySelector(".board").innerText.includes("token:")`) // owners have names
	p.look("board")

	p.drag("#card-"+ids["BLOCKED"], "ready")
	p.in("ready", ids["BLOCKED"])
	p.drag("#card-"+ids["READY"], "progress")
	p.waitForText("a worker takes it when it is its turn")
	p.in("ready", ids["READY"])
	p.expectError("status of 409")
	p.drag("#card-"+ids["COMPLETED"], "ready")
	p.write("#reopen textarea", "It must be bolder")
	p.look("board-dialog")
	p.click("#reopen [value=reopen]")
	p.in("ready", ids["COMPLETED"])

	p.do(chromedp.Focus(chromedp.CSS("#moves-" + ids["FAILED"] + " summary")))
	p.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Escape))
	p.until(`!document.querySelector(".moves[open]") && document.activeElement?.localName === "summary"`)
	p.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	p.in("done", ids["FAILED"])

	// Somebody else's change, without a reload.
	if _, err := operations.RestartTask.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.TaskRef{ID: ids["AWAITING_APPROVAL"]}); err != nil {
		t.Fatal(err)
	}
	p.in("ready", ids["AWAITING_APPROVAL"])

	p.phone()
	p.until(`innerWidth === 390`)
	p.click("#moves-" + ids["WAITING_INPUT"] + " summary")
	p.look("board-phone")
	p.fits("the board on a phone")
	p.click("#moves-" + ids["WAITING_INPUT"] + " [value=stop]")
	p.in("stopped", ids["WAITING_INPUT"])
	p.eval(`document.documentElement.dataset.theme = "dark"`)
	p.desktop()
	p.look("board-dark")
	events, err := operations.GetRecentEvents.Call(t.Context(), h.app.Service.Operations(), operation.Caller{Principal: h.owner.Principal, Scopes: h.owner.Scopes}, operations.WorkEventQuery{Task: ids["FAILED"]})
	if err != nil || events.Items[0].Type != "task.skipped" {
		t.Errorf("%+v %v", events.Items, err)
	}
}

// The board changes in place: only cards that changed are touched, the keyboard stays where it is, nothing moves while a card is dragged,
// and more of a column is shown on demand.
func TestBoardInPlace(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	ids := h.board("FAILED", "BLOCKED", "WAITING_INPUT")
	ops := h.app.Service.Operations()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var ready []string
	for i := range 110 {
		made, err := operations.CreateTask.Call(t.Context(), ops, h.owner, operations.NewTask{Title: fmt.Sprintf("Ready %d", i), Project: "site"})
		must(err)
		ready = append(ready, made.ID)
	}
	p := h.signedIn()
	p.desktop()
	p.visit("/work?project=site")
	cards := func(column string, n int, total string) {
		t.Helper()
		p.until(fmt.Sprintf(`document.querySelectorAll("[data-column=%s] .card").length === %d && document.querySelector("[data-column=%s] h2 small").textContent === %q`, column, n, column, total))
	}
	cards("ready", 50, "110")
	p.until(`document.querySelector(".board").dataset.shown`)                 // the stream is there
	p.until(`!document.querySelector(".recent").innerText.includes("Ready")`) // tasks are on the board, and do not hide what people said
	p.eval(`document.querySelectorAll(".card").forEach((card) => (card.kept = true))`)

	// Somebody else renames the task that has the keyboard, and moves another one.
	p.do(chromedp.Focus(chromedp.CSS("#moves-" + ids["BLOCKED"] + " summary")))
	_, err := operations.EditTask.Call(t.Context(), ops, h.owner, operations.TaskChanges{ID: ids["BLOCKED"], Title: "Renamed"})
	must(err)
	p.until(fmt.Sprintf(`document.querySelector("#card-%s h3").textContent === "Renamed"`, ids["BLOCKED"]))
	p.until(fmt.Sprintf(`document.activeElement === document.querySelector("#moves-%s summary")`, ids["BLOCKED"]))
	_, err = operations.SkipTask.Call(t.Context(), ops, h.owner, operations.TaskRef{ID: ids["FAILED"]})
	must(err)
	p.in("done", ids["FAILED"])
	p.until(fmt.Sprintf(`document.activeElement === document.querySelector("#moves-%s summary")`, ids["BLOCKED"]))
	_, err = operations.RestartTask.Call(t.Context(), ops, h.owner, operations.TaskRef{ID: ids["BLOCKED"]}) // it has no menu in its new column
	must(err)
	p.in("ready", ids["BLOCKED"])
	p.until(fmt.Sprintf(`document.activeElement === document.querySelector("#card-%s h3 a")`, ids["BLOCKED"]))
	cards("ready", 50, "111")
	if others := p.text(`[...document.querySelectorAll(".card")].filter((card) => !card.kept).map((card) => card.dataset.task).sort().join(" ")`); others != sorted(ids["BLOCKED"], ids["FAILED"]) {
		t.Errorf("touched: %s, want %s and %s", others, ids["BLOCKED"], ids["FAILED"])
	}

	// A change while a card is dragged is shown when it is dropped.
	p.take("#card-" + ids["WAITING_INPUT"])
	_, err = operations.EditTask.Call(t.Context(), ops, h.owner, operations.TaskChanges{ID: ready[3], Title: "Meanwhile"})
	must(err)
	p.until(`document.querySelector(".board").dataset.held`)
	if title := p.text(fmt.Sprintf(`document.querySelector("#card-%s h3").textContent`, ready[3])); title != "Ready 3" {
		t.Errorf("during the drag: %q", title)
	}
	p.put("stopped")
	p.until(fmt.Sprintf(`document.querySelector("#card-%s h3").textContent === "Meanwhile"`, ready[3]))
	p.in("stopped", ids["WAITING_INPUT"])

	p.click("[data-column=ready] [data-more]")
	cards("ready", 100, "111")
	p.until(`new URLSearchParams(location.search).get("ready") === "100" && new URLSearchParams(location.search).get("project") === "site"`)
	p.look("board-more")
	p.click("[data-column=ready] [data-more]")
	cards("ready", 111, "111")
	p.until(`!document.querySelector("[data-column=ready] [data-more]")`)
	if pages := p.text(`performance.getEntriesByType("resource").filter((r) => new URL(r.name).pathname === "/work").length`); pages != "0" {
		t.Errorf("the page was loaded %s times", pages)
	}
	p.do(reload()) // more is in the address
	cards("ready", 111, "111")

	// A restart of the server is seen too.
	h.restart()
	_, err = operations.SkipTask.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.TaskRef{ID: ids["WAITING_INPUT"]})
	must(err)
	p.in("done", ids["WAITING_INPUT"])
	p.expectError("ERR_") // the connection was lost for a while
}

// sorted are words in their order.
func sorted(words ...string) string {
	slices.Sort(words)
	return strings.Join(words, " ")
}
