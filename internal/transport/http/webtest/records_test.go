package webtest

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"chorus/internal/operations"
)

// Filters of the audit log and of a journal stay in the address, expressions of rules are behind a click, and what is filtered can be taken along.
func TestRecordsAreFilteredAndExported(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	id := h.session(operations.NewSession{WorkspacePath: t.TempDir(), Permissions: "standard"})
	h.prompt(id, `call read {"path":"no-such-file"}`+"\nend\nsay =cmd()")
	other := h.session(operations.NewSession{WorkspacePath: t.TempDir(), Permissions: "open"})
	h.prompt(other, `call bash {"command":"echo other"}`+"\nend\nsay done")
	p := h.signedIn()
	p.desktop()
	p.visit("/audit")
	p.until(`document.querySelectorAll("table.list tbody tr").length > 1`)
	if shown := p.text(`[...document.querySelectorAll("table.list .rule code")].some((e) => e.checkVisibility())`); shown != "false" {
		t.Error("an expression is shown without a click")
	}
	p.write(`input[name=session]`, id)
	p.click(`.filters .button`)
	p.until(fmt.Sprintf(`location.search.includes("session=%s")`, id))
	p.until(`document.querySelectorAll("table.list tbody tr").length === 1`)
	if line := p.text(`document.querySelector("table.list tbody tr").innerText`); !strings.Contains(line, "reading files in the workspace") || !strings.Contains(line, "allowed") {
		t.Errorf("the rule has no name, or the decision no word: %q", line)
	}
	p.eval(`document.querySelector("table.list .rule summary").click()`)
	p.until(`document.querySelector("table.list .rule code").checkVisibility()`)
	p.look("audit-filtered")
	if known := p.text(`document.querySelector("#known-sessions option[value='` + id + `']") && document.querySelector("#known-agents option[value=chorus]") && document.querySelector("#known-people option").value.startsWith("token:")`); known != "true" {
		t.Error("nothing to choose from: ", known)
	}
	p.do(reload()) // an address that was kept shows the same
	p.until(fmt.Sprintf(`document.querySelector("input[name=session]").value === %q && document.querySelectorAll("table.list tbody tr").length === 1`, id))
	p.eval(`document.querySelector("select[name=decision]").value = "deny"`)
	p.click(`.filters .button`)
	p.until(`location.search.includes("decision=deny") && document.querySelector("select[name=decision]").selectedOptions[0].innerText === "refused"`)
	p.waitForText("No matching audit entries")
	p.visit("/audit?session=" + id)
	file := value[string](p, `fetch(document.querySelector("a[href*='format=csv']").href).then((r) => r.text())`)
	rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	if err != nil || len(rows) != 2 || !strings.Contains(strings.Join(rows[1], "|"), "tool:read:no-such-file|allow|reading files in the workspace|") {
		t.Errorf("%v %q", err, file)
	}
	if lines := value[string](p, `fetch(document.querySelector("a[href*='format=jsonl']").href).then((r) => r.text())`); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, `"action":"tool:read:no-such-file"`) {
		t.Errorf("JSON lines %q", lines)
	}
	p.visit("/s/" + id + "/journal")
	p.eval(`document.querySelector("select[name=kind]").value = "said"`)
	p.click(`.filters .button`)
	p.until(`location.search.includes("kind=said") && document.querySelectorAll(".timeline > li").length === 2`)
	if kinds := p.text(`[...document.querySelectorAll(".timeline .kind")].map((e) => e.innerText).join()`); kinds != "Answer of the model,Answer of the model" {
		t.Errorf("kinds %s", kinds)
	}
	p.look("journal-filtered")
	file = value[string](p, `fetch(document.querySelector("h2 ~ p a[href*='export?kind=said'][href*='csv']").href).then((r) => r.text())`)
	if rows, err = csv.NewReader(strings.NewReader(file)).ReadAll(); err != nil || len(rows) != 3 || rows[2][2] != "said" {
		t.Errorf("%v %q", err, file)
	}
	p.visit("/audit?since=yesterday")
	p.waitForText("is not a date; write one like 2026-11-17")
	p.expectError("400")
}
