// Package action is the strings that permission rules are matched against:
// "tool:<tool>:<detail>". It promises that Split undoes Join, and that a path has one
// spelling (CleanPath), so that no rule can be avoided by writing a path in another way.
package action

import (
	"slices"
	"strings"
)

// Join is the action string of a tool's detail.
func Join(tool, detail string) string { return "tool:" + tool + ":" + detail }

// Bash is what the action of every shell command begins with.
const Bash = "tool:bash:"

// Split takes an action string apart; ok is false if it is none.
func Split(action string) (tool, detail string, ok bool) {
	rest, ok := strings.CutPrefix(action, "tool:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

// IsShell reports whether the detail of a tool is a shell command.
func IsShell(tool string) bool {
	return tool == "bash" || tool == "run_background" || tool == "run_concurrent"
}

var pathTools = []string{"read", "list_files", "search_files", "write", "edit", "apply_patch", "upload"}

// IsPath reports whether the detail of a tool is a path.
func IsPath(tool string) bool { return slices.Contains(pathTools, tool) }
