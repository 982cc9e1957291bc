package cli

import "testing"

// TestHint: an error that is the same everywhere says at a terminal what to type next; all others stay as they are.
func TestHint(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		`there is no session "x"`:          "there is no session \"x\"; `chorus thread list` shows them",
		`task 3: there is no agent "ida"`:  "task 3: there is no agent \"ida\"; `chorus agent list` shows them",
		`there is no agent "ida"; ask ada`: `there is no agent "ida"; ask ada`,
		"--project is required (no active project set); `chorus project list` shows them": "name the project with --project; `chorus project list` shows them",
		"No fields to update. Provide name.":                                              "nothing to change; use at least one of the flags in --help",
		"file: open a/b.txt: no such file or directory":                                   "file: there is no file a/b.txt",
		"the disk is full": "the disk is full",
	} {
		if got := Hint(words); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", words, got, want)
		}
	}
}
