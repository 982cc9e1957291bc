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

// Instructions that only a model understands are shown as it has read them, and hold when the person says so; what it cannot
// read is said and holds nothing.
func TestInstructionsThatAModelReads(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	work := t.TempDir()
	id := h.session(operations.NewSession{WorkspacePath: work, Permissions: "open"})
	h.prompt(id, `call run_background {"command":"until [ -e stop ]; do sleep 0.05; done","timeout":300}`+"\nend\nsay it runs")
	stop := func() {
		if err := os.WriteFile(filepath.Join(work, "stop"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(stop)
	p := h.signedIn()
	p.visit("/processes")
	p.until(`document.querySelector("table.list tbody a")`)
	p.click("table.list tbody a")
	hooks := `document.querySelectorAll("#process-hooks li").length`
	p.until(hooks + ` === 1`) // the one that tells of its end
	p.expectError("400")
	p.write("textarea[name=say]", "!say Sure! I will do that.")
	p.click("form.form .button")
	p.waitForText("did not answer in the form that was asked for")
	p.visit("/processes")
	p.click("table.list tbody a")
	p.write("textarea[name=say]", `!say {"hooks":[{"on":"output","pattern":"9[0-9]%","do":"notify_channel"}]}`)
	p.click("form.form .button")
	p.waitForText("when it prints a line that matches /9[0-9]%/, tell people")
	if p.number(hooks) != 1 {
		t.Error("what was only shown holds already")
	}
	p.phone()
	p.fits("what a model has read, on a phone")
	p.click(".ask .button")
	p.until(hooks + ` === 2`)
	p.once("when it prints a line that matches /9[0-9]%/", "#process-hooks li")
}
