package webtest

import (
	"fmt"
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

// drag moves a card to a column with the mouse.
func (t *tab) drag(card, column string) {
	t.Helper()
	at := func(selector, where string) (x, y float64) {
		return t.number(fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().left + 30", selector)), t.number(fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().%s", selector, where))
	}
	t.eval(fmt.Sprintf(`document.querySelector(%q).scrollIntoView({ block: "center", behavior: "instant" })`, card))
	x, y := at(card, "bottom - 4")
	toX, toY := at("[data-column="+column+"]", "top + 60")
	mouse := func(kind input.DispatchMouseEventType, x, y float64) {
		call(t, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1})
	}
	// Without a screen the browser does not carry the drag on by itself: it is taken over once the page has begun it.
	call(t, input.SetInterceptDrags, input.SetInterceptDragsParams{Enabled: true})
	mouse(input.DispatchMouseEventTypeMousePressed, x, y)
	for _, further := range []float64{2, 6, 12, 20} { // a drag begins after some way
		mouse(input.DispatchMouseEventTypeMouseMoved, x+further, y+further/4)
	}
	t.until(`document.body.dataset.busy`)
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver} {
		call(t, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: toX, Y: toY, Data: &input.DragData{Items: []*input.DragDataItem{}, DragOperationsMask: 16}})
	}
	t.until(fmt.Sprintf(`document.querySelector("[data-column=%s]").classList.contains("over")`, column))
	call(t, input.DispatchDragEvent, input.DispatchDragEventParams{Type: input.DispatchDragEventTypeDrop, X: toX, Y: toY, Data: &input.DragData{Items: []*input.DragDataItem{}, DragOperationsMask: 16}})
	mouse(input.DispatchMouseEventTypeMouseReleased, toX, toY)
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
	p.waitForText("a worker takes it by itself when it is its turn")
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
