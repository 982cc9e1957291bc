package work_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"chorus/internal/work"
)

func TestPlansAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		text     string
		steps    string // titles with |
		explicit bool
		common   string // is in the background
		not      string // is in no step
	}{
		"phases": {"# Dark mode\n\nUse CSS variables.\n\n## Phase 1: Colours\nMove the colours.\n\n### Notes\nof phase 1\n\n## Phase 2 - **Switch**\nAdd it.\n\n## Risks\nNone.\n",
			"Colours|Switch", true, "Use CSS variables.", "None."},
		"steps below one phase":   {"## Phase 1\n### Step 1: Read\nread it\n### Step 2: Write\nwrite it\n", "Read|Write", true, "", ""},
		"one phase":               {"## Phase 1: Everything\nDo all of it.\n", "Everything", false, "", ""},
		"a section that is named": {"# X\n\nWhy: because.\n\n## Implementation Plan\n\n### 1. Parse\nwrite a parser\n### 2. Test\nwrite tests\n\n## Risks\nmany\n", "Parse|Test", true, "Why: because.", "many"},
		"a list in a section":     {"## Action items\n\n1. **Parse** the file\n   and keep lines\n2) Test it\n\nThat is all.\n", "Parse the file|Test it", true, "That is all.", "That is all."},
		"sections":                {"# Title\n\n## Overview\nWe want it.\n\n## Add the parser\nIt reads all the lines of a file.\n\n## Testing strategy\nUnit tests for everything.\n\n## Wire the parser\nThe command calls the parser.\n\n## Empty\n", "Add the parser|Wire the parser", false, "We want it.", "Unit tests"},
		"a list":                  {"I would do this:\n\n1. Parse\n2. Test\n   - well\n\nGood luck\n", "Parse|Test", false, "I would do this:", "Good luck"},
		"nothing but text":        {"# Rename it\n\nRename foo to bar everywhere.\n", "Rename it", false, "", ""},
		"text without a title":    {"Rename foo to bar.", "Implementation Plan", false, "", ""},
		"only a title":            {"# Plan\n\n", "", false, "", ""},
		"nothing":                 {"", "", false, "", ""},
		"code is no heading":      {"## Step 1: A\n```sh\n# Step 2: not a step\n## Step 3: neither\n```\n## Step 2: B\nx\n", "A|B", true, "", ""},
		"fenced as a whole":       {"```markdown\n## Step 1: A\nx\n## Step 2: B\ny\n```", "A|B", true, "", ""},
		"windows":                 {"\ufeff## Phase 1: A\r\na\r\n## Phase 2: B\r\nb\r\n", "A|B", true, "", ""},
		"a phase without a name":  {"## Phase 1\nfirst\n## Phase 2:\nsecond\n", "Phase 1|Phase 2", true, "", ""},
		"letters and roman":       {"## Part A: X\na\n## Part B: Y\nb\n", "X|Y", true, "", ""},
		"an ordinary report":      {"Done. I changed two files:\n\n- a.go\n- b.go\n", "Implementation Plan", false, "", ""},
		"tasks as words":          {"## Task force\nlong text about the task force\n## Stage fright\nlong text about stage fright\n", "Task force|Stage fright", false, "", ""},
	} {
		got, ok := work.ReadOutline(c.text)
		var titles, all []string
		for _, s := range got.Steps {
			titles, all = append(titles, s.Title), append(all, s.Text)
		}
		if strings.Join(titles, "|") != c.steps || ok != (c.steps != "") || got.Explicit != c.explicit {
			t.Errorf("%s: %q (explicit %v), want %q (%v)", what, strings.Join(titles, "|"), got.Explicit, c.steps, c.explicit)
		}
		if !strings.Contains(got.Background, c.common) || c.not != "" && strings.Contains(strings.Join(all, "\n"), c.not) {
			t.Errorf("%s: background %q, steps %q", what, got.Background, all)
		}
	}
}

func TestAStepIsToldAllItMustKnow(t *testing.T) {
	t.Parallel()
	o, _ := work.ReadOutline("# Dark mode\nUse variables.\n## Phase 1: Colours\nmove them\n## Phase 2: Switch\nadd it\n")
	got := o.Describe(work.Task{Title: "Add a dark mode"}, 1)
	for _, want := range []string{"**Switch**", "step 2 of 2", "Add a dark mode", "Use variables.", "add it", "1. Colours", "2. Switch (this one)"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "move them") {
		t.Errorf("the other step's details are in\n%s", got)
	}
}

// A text that was made to be slow is read at once all the same. The bound is far above what each takes with the race detector on a busy
// machine, and far below what reading every line for every other would take.
func TestHostilePlansCostLittle(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{"marks": "# " + strings.Repeat(" *a", 26_000), "headings": strings.Repeat("#\n", 40_000), "phases": strings.Repeat("### Step 1\n## Step 1\n", 4_000),
		"sections": strings.Repeat("## plan\n### x\n", 4_000), "lists": strings.Repeat("1. *a\n", 12_000), "fences": strings.Repeat("```\n", 20_000)} {
		begun := time.Now()
		if work.ReadOutline(text); time.Since(begun) > 10*time.Second {
			t.Errorf("%s took %s", what, time.Since(begun))
		}
	}
}

func FuzzAnyTextIsAPlanOrNone(f *testing.F) {
	for _, seed := range []string{"## Phase 1: A\nb\n## Phase 2: C\nd", "1. a\n2. b", "# x", "```\n## Step 1\n", "\xff\xfe## Step 1: \x00", "#\n##\n###", "## **Step 1**: `x`\r## Step 2", "~~~\n1) a\n~~~\n1) b\n2) c\n\nend",
		strings.Repeat("## Step 1: a\n", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, ok := work.ReadOutline(text)
		if ok != (len(o.Steps) > 0) {
			t.Fatalf("%v with %d steps", ok, len(o.Steps))
		}
		size := len(o.Background)
		for i, s := range o.Steps {
			if s.Title == "" || strings.ContainsAny(s.Title, "\n\r\x00") || utf8.RuneCountInString(s.Title) > 120 || strings.TrimSpace(s.Title) != s.Title {
				t.Fatalf("step %d is called %q", i, s.Title)
			}
			size += len(s.Text)
			if !utf8.ValidString(s.Title + s.Text + o.Background) {
				t.Fatalf("step %d is no text", i)
			}
		}
		if size > 3*len(text)+1000 { // a broken byte becomes three
			t.Fatalf("%d bytes became %d", len(text), size)
		}
		for i := range min(len(o.Steps), 3) {
			if !strings.Contains(o.Describe(work.Task{Title: "x"}, i), o.Steps[i].Title) {
				t.Fatal("a description does not say what is to be done")
			}
		}
	})
}
