package webtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"chorus/internal/operations"
)

// reachable are the elements of a page that somebody could want to press or fill in.
const reachable = `[...document.querySelectorAll("main :is(a[href], button, input, select, textarea, summary)")].filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled && e.type !== "hidden" &&
	!(e.type === "radio" && !e.checked && document.querySelector("input[type=radio][name='" + e.name + "']:checked")))`

// With Tab alone everything on a page is reached, in the order in which it stands there, and one sees where one is.
func TestTabReachesEverything(t *testing.T) {
	t.Parallel()
	h := newServer(t, "budgets:", "  agent: {month: 10}")
	ops := h.app.Service.Operations()
	if _, err := operations.SaveProfile.Call(t.Context(), ops, h.owner, operations.ProfileEdit{Name: "careful", Allow: []string{"tool:read:.*"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := operations.CreateAgent.Call(t.Context(), ops, h.owner, operations.NewAgent{Name: "helper", SystemPrompt: "You help.", Tools: "read"}); err != nil {
		t.Fatal(err)
	}
	talk := h.session(operations.NewSession{Permissions: "open"})
	h.prompt(talk, `call bash {"command":"echo one"}`+"\nend\nsay done")
	asks := h.session(operations.NewSession{Permissions: "standard"})
	p := h.signedIn()
	p.desktop()
	p.visit("/s/" + asks)
	p.say("call bash {\"command\":\"cd src && touch x\"}\nend\nsay over")
	p.until(`document.querySelector("form.verdict")`)
	always := p.text(`document.querySelector("a.always").getAttribute("href")`)
	for _, path := range []string{"/agents", "/agents/helper", "/agents/helper/edit", "/permissions", "/permissions/careful", "/approvals", always, "/audit", "/s/" + talk + "/journal", "/settings", "/costs", "/s/" + talk + "/runs/9999"} {
		p.visit(path)
		p.until(`document.readyState === "complete"`)
		p.eval(`document.body.dataset.busy = "1"`) // a page that renews itself meanwhile would have other elements
		n := int(p.number(`(() => { window.todo = ` + reachable + `; window.seen = []; window.dim = [];
			document.addEventListener("focusin", ({ target: e }) => { seen.push(todo.find((one) => one === e) ?? todo.find((one) => one.outerHTML === e.outerHTML && !seen.includes(one))); const s = getComputedStyle(e); if (s.outlineStyle === "none" && main.contains(e) && e !== main) dim.push(e.outerHTML.slice(0, 120)) });
			const main = document.querySelector("main"); main.focus(); return todo.length })()`))
		p.do(chromedp.KeyEvent(strings.Repeat(kb.Tab, n+40))) // dates have a field for each part, and some texts can be scrolled
		if missed := value[[]string](p, `todo.filter((e) => !seen.includes(e)).map((e) => e.outerHTML.slice(0, 160))`); n == 0 || len(missed) > 0 {
			t.Errorf("%s: of %d elements Tab does not reach %q", path, n, missed)
		}
		if dim := value[[]string](p, `dim`); len(dim) > 0 {
			t.Errorf("%s: one does not see where one is: %q", path, dim)
		}
		if disorder := p.text(`(() => { const order = seen.filter((e) => todo.includes(e)).map((e) => todo.indexOf(e)); const once = order.filter((n, i) => order.indexOf(n) === i); return once.some((n, i) => i > 0 && n < once[i - 1]) })()`); disorder != "false" {
			t.Errorf("%s: Tab jumps back and forth", path)
		}
	}

	// A question is answered, and an agent is changed, without a mouse.
	press := func(selector, key string) {
		t.Helper()
		p.do(chromedp.Focus(chromedp.CSS(selector)))
		p.do(chromedp.KeyEvent(key))
	}
	p.visit("/agents/helper/edit")
	press("input[name=which][value=some]", kb.ArrowUp) // all tools
	p.until(`document.querySelector("input[name=which][value=all]").checked`)
	press("button[value=save]", kb.Enter)
	p.until(`location.pathname === "/agents/helper"`)
	p.visit("/approvals")
	press("form.verdict button[value=approve]", " ")
	p.waitForText("No pending approvals")
}

// Whoever asks their system for less motion sees none; others see some.
func TestReducedMotion(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, _ := h.begin(operations.NewSession{Permissions: "open"})
	p.say("call bash {\"command\":\"echo one\"}\nend\nsay done")
	p.waitUntilIdle()
	p.eval(`const dot = document.createElement("i"); dot.className = "dot running"; document.querySelector("main").append(dot)`)
	moving := func(wish string) float64 {
		t.Helper()
		call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: wish}}})
		p.until(fmt.Sprintf(`matchMedia("(prefers-reduced-motion: %s)").matches`, wish))
		return p.number(`[...document.querySelectorAll("*")].flatMap((e) => ["", "::before", "::after"].map((part) => getComputedStyle(e, part))).filter((s) =>
			s.animationName !== "none" || s.transitionDuration.split(", ").some((d) => parseFloat(d) > 0) || s.scrollBehavior === "smooth").length`)
	}
	if n := moving("no-preference"); n < 3 {
		t.Errorf("%v elements move", n)
	}
	if n := moving("reduce"); n != 0 {
		t.Errorf("%v elements move although the system asks for no motion", n)
	}
}
