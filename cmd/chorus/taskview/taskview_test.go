package taskview

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"chorus/internal/operations"
	"chorus/internal/theme"
)

func TestDrawTree(t *testing.T) {
	t.Parallel()
	nodes := []operations.TaskNode{{ID: "a", Line: "a", Title: "Plan\x1b[2J", Status: "IN_PROGRESS"}, {ID: "b", Line: "├─ b", Title: "First", Status: "COMPLETED"}, {ID: "c", Line: "└─ c", Title: "Second", Status: "BLOCKED"},
		{ID: "d", Line: "   └─ d", Title: "Third", Status: "DEFINED"}}
	got := Tree(nodes, theme.Theme{})
	want := "a        ● IN_PROGRESS  Plan[2J\n├─ b     ✓ COMPLETED  First\n└─ c     ✗ BLOCKED  Second\n   └─ d  · DEFINED  Third\n[#####---------------] 1 of 4 completed\n"
	if strings.ReplaceAll(got, "\uFFFD", "") != want && got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if colored := Tree(nodes, theme.Of(theme.Terminal, theme.Unknown, false)); !strings.Contains(colored, "\x1b[32m✓ COMPLETED\x1b[0m") || strings.Contains(colored, "\x1b[2J") {
		t.Errorf("%q", colored)
	}
}

// Without a terminal every step is a line and nothing is drawn twice; with one a line shows how far it is.
func TestTaskWatch(t *testing.T) {
	t.Parallel()
	var lines, live bytes.Buffer
	w := &taskWatch{lines: &lines}
	for _, state := range []string{"READY", "READY", "IN_PROGRESS", "WAITING_INPUT", "COMPLETED"} {
		over, err := w.show(operations.Task{ID: "a-b", Title: "Do it", Status: state})
		if err != nil || over != (state == "COMPLETED") {
			t.Errorf("%s: %v %v", state, over, err)
		}
		if state == "IN_PROGRESS" {
			w.step("bash make test")
		}
	}
	if want := "○ READY  Do it\n● IN_PROGRESS  Do it\n  bash make test\n? WAITING_INPUT  Do it\n✓ COMPLETED  Do it\n"; lines.String() != want {
		t.Errorf("%q, want %q", lines.String(), want)
	}
	lines.Reset()
	w = &taskWatch{lines: &lines, live: &live, width: 60, doing: "bash make test"}
	if over, err := w.show(operations.Task{ID: "a-b", Title: "Do it", Status: "IN_PROGRESS"}); over || err != nil || !strings.Contains(live.String(), "[#######-----] in_progress") {
		t.Errorf("%q %v %v", live.String(), over, err)
	}
	if over, err := w.show(operations.Task{ID: "a-b", Status: "BLOCKED", Why: "two conflicts"}); !over || !errors.Is(err, ErrBad) || !strings.Contains(lines.String(), "two conflicts") {
		t.Errorf("%q %v %v", lines.String(), over, err)
	}
	if done, all := taskProgress(operations.Task{Status: "IN_PROGRESS", Subtasks: []operations.TaskBrief{{Status: "COMPLETED"}, {Status: "READY"}}}); done != 1 || all != 2 {
		t.Errorf("%d of %d", done, all)
	}
}
