package webtest

import (
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/operations"
)

// What a process prints appears in the page that is open, over a restart of the server, and so does its end.
func TestProcesses(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	work := t.TempDir()
	id := h.session(operations.NewSession{WorkspacePath: work, Permissions: "open"})
	h.prompt(id, `call run_background {"command":"echo '<b>up</b>'; for f in one two stop; do until [ -e $f ]; do sleep 0.05; done; echo seen $f; done; exit 3","timeout":300}`+"\nend\nsay it runs")
	touch := func(name string) {
		if err := os.WriteFile(filepath.Join(work, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { touch("one"); touch("two"); touch("stop") })
	p := h.signedIn()
	p.desktop()
	p.visit("/processes")
	p.until(`document.querySelector("table.list tbody a")`)
	p.click("table.list tbody a")
	output := func(text string) {
		t.Helper()
		p.until(`document.getElementById("output")?.textContent === ` + "`" + text + "`")
	}
	output("<b>up</b>\n")
	touch("one")
	output("<b>up</b>\nseen one\n")
	p.write("textarea[name=say]", "after 2 hours, stop it")
	p.click("form.form .button")
	p.waitForText("when it still runs after 2h0m0s, stop the process")
	p.click(".ask .button")
	p.until(`document.querySelectorAll("#process-hooks li").length === 2`)
	p.until(`document.getElementById("output")?.textContent.includes("seen one")`)
	p.eval(`window.kept = true`)
	p.expectError("net::ERR") // while the server is down
	h.restart()
	touch("two")
	output("<b>up</b>\nseen one\nseen two\n")
	for _, theme := range []string{"light", "dark"} {
		p.eval(`document.documentElement.dataset.theme = "` + theme + `"`)
		p.phone()
		p.until(`innerWidth === 390`)
		p.fits("a process on a phone")
	}
	touch("stop")
	output("<b>up</b>\nseen one\nseen two\nseen stop\n")
	p.waitForText("Process exited")
	p.waitForText("exit code 3")
	p.waitForText("notify_channel")
	p.until(`!document.querySelector("form[action^='/processes/']") && window.kept`)
}
