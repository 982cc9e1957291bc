package webtest

import (
	"fmt"
	"strings"
	"testing"

	"chorus/internal/operations"
)

// Costs are shown by model, agent, person, channel and day, with what came from a cache, how near budgets are and what the month will come to.
func TestCosts(t *testing.T) {
	t.Parallel()
	h := newServer(t, "prices:", "  demo/script: {input: 3, output: 15, cacheRead: 0.3}", "budgets:", "  agent: {month: 10}", "  person: {day: 5}", "  channel: {month: 100}", "  task: 3")
	id := h.session(operations.NewSession{})
	h.prompt(id, "usage in=900000 out=100000 read=600000\nsay that was expensive")
	p := h.signedIn()
	p.desktop()
	p.visit("/costs")
	for by, row := range map[string]string{"agent": "chorus", "person": "owner", "channel": "web, owner", "day": p.text(`new Date().toISOString().slice(0, 10)`), "model": "demo/script"} {
		p.eval(fmt.Sprintf(`document.querySelector("select[name=by]").value = %q`, by))
		p.click(".filters .button")
		p.until(fmt.Sprintf(`location.search.includes("by=%s") && document.querySelector("main h2")?.innerText === "By %s"`, by, by))
		p.until(`document.querySelector("svg.chart rect.spent") && document.querySelector(".hbars meter")`)
		line := p.text(`document.querySelector(".hbars tbody tr").innerText.replace(/\s+/g, " ")`)
		if by != "day" && !strings.HasPrefix(line, row+" ") || !strings.Contains(line, "600 k") || !strings.Contains(line, " 40 %") {
			t.Errorf("by %s: %q", by, line)
		}
		if gap := p.number(`Math.abs([...document.querySelectorAll(".big-screen svg.chart .axis")].at(-1).getBoundingClientRect().top - document.querySelector("rect.spent").getBoundingClientRect().bottom)`); gap > 2 {
			t.Errorf("the bar ends %v pixels above the axis", gap)
		}
	}
	money := func(tile int) float64 {
		return p.number(fmt.Sprintf(`document.querySelectorAll(".tiles b")[%d].innerText.replace(/[$ %%]/g, "")`, tile))
	}
	if spent, month, forecast, cached := money(0), money(1), money(2), money(3); spent <= 0 || month > spent || forecast < month || cached < 40 {
		t.Errorf("spent %v, this month %v, by its end %v, cached %v %%", spent, month, forecast, cached)
	}
	budgets := p.text(`[...document.querySelectorAll(".budgets li")].map((e) => e.innerText.replace(/\s+/g, " ")).join("; ")`)
	for _, want := range []string{"Agent chorus per month", "Person owner per day", "Channel web, owner per month", "Each task $0 of $3.00", "of $10.00", "%"} {
		if !strings.Contains(budgets, want) {
			t.Errorf("%q is missing: %s", want, budgets)
		}
	}
	if wide := p.number(`Math.min(...[...document.querySelectorAll(".budgets meter:not([aria-label='Each task'])")].map((m) => m.value / m.max))`); wide <= 0 || wide >= 1 {
		t.Errorf("a budget's bar is filled to %v", wide)
	}
	p.look("costs-1280")
	p.phone()
	p.until(`innerWidth === 390`)
	p.fits("costs")
	p.showsCards("costs")
	if small := p.number(`document.querySelector(".small-screen .chart text").getBoundingClientRect().height`); small < 12 {
		t.Errorf("words of the chart are %v points high on a phone", small)
	}
	p.look("costs-390")
	p.visit("/costs?by=day&since=7d")
	p.until(`document.querySelector("select[name=since]").selectedOptions[0].innerText === "the last 7 days"`)
	over := p.text(`(() => { const boxes = [...document.querySelectorAll(".small-screen .chart text[text-anchor=middle], .small-screen .chart text:last-child")].map((e) => e.getBoundingClientRect());
		return boxes.some((b, i) => i > 0 && b.left < boxes[i - 1].right) || boxes.at(-1).right > 390 })()`)
	if over != "false" {
		t.Error("days of the chart stand over each other on a phone")
	}
	p.look("costs-390-week")
}
