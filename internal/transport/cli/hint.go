package cli

import (
	"strings"

	"chorus/internal/pattern"
)

var (
	noneNamed = pattern.Lazy(`there is no (session|agent) "[^"\n]*"$`)
	notThere  = pattern.Lazy(`(?:\b(?:open|stat|lstat|read) )([^\s:]+): no such file or directory$`)
)

// Hint rewrites an error for a terminal: it says what to type next where errors are the same everywhere, and names a missing file plainly.
func Hint(words string) string {
	if m := noneNamed().FindStringSubmatch(words); m != nil {
		list := "thread"
		if m[1] == "agent" {
			list = "agent"
		}
		return words + "; `chorus " + list + " list` shows them"
	}
	if before, after, ok := strings.Cut(words, "--project is required (no active project set)"); ok {
		return before + "name the project with --project" + after
	}
	if before, _, ok := strings.Cut(words, "No fields to update"); ok {
		return before + "nothing to change; use at least one of the flags in --help"
	}
	return notThere().ReplaceAllString(words, "there is no file $1")
}
