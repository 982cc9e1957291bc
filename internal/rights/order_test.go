package rights_test

import (
	"testing"

	"chorus/internal/permit"
	"chorus/internal/rights"
)

// The presets really stand in that order: what a narrower one allows, every wider one allows.
func TestPresetsAreNested(t *testing.T) {
	t.Parallel()
	requests := []permit.Request{
		{Tool: "read", Detail: "src/a.go"}, {Tool: "write", Detail: "src/a.go"}, {Tool: "edit", Detail: "a"}, {Tool: "search", Detail: "x"},
		{Tool: "read", Detail: ".env"}, {Tool: "write", Detail: ".git/config"}, {Tool: "write", Detail: "/etc/passwd"}, {Tool: "list", Detail: "."},
		{Tool: "notes", Detail: "{}"}, {Tool: "git_status", Detail: ""}, {Tool: "git_commit", Detail: "x"}, {Tool: "mcp__x__y", Detail: "{}"},
	}
	for _, command := range []string{"ls -la", "git status", "git push", "rm -rf build", "go test ./...", "curl https://example.org", "rm -rf /",
		"sudo reboot", "cat a | sort", "echo x > y", "npm install", "make", "eval $x", "ssh host ls"} {
		requests = append(requests, permit.Request{Tool: "bash", Detail: command, Command: command})
	}
	for _, chain := range rights.Presets() {
		for i, wide := range chain {
			for _, narrow := range chain[i:] {
				nested(t, wide, narrow, requests)
			}
		}
	}
}

func nested(t *testing.T, wide, narrow string, requests []permit.Request) {
	t.Helper()
	w, err := permit.Preset(wide)
	if err != nil {
		t.Fatal(err)
	}
	n, err := permit.Preset(narrow)
	if err != nil {
		t.Fatal(err)
	}
	o := permit.JudgeOptions{Home: "/home/x/.chorus", Workspace: "/work", UserHome: "/home/x"}
	for _, r := range requests {
		if n.Judge([]permit.Request{r}, o).Verdict == permit.Allow && w.Judge([]permit.Request{r}, o).Verdict != permit.Allow {
			t.Errorf("%s allows %+v, %s does not", narrow, r, wide)
		}
	}
}
