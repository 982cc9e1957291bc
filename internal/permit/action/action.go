// Package action builds and parses the strings that permission rules are matched against:
// "tool:<tool>:<detail>". It promises that Split undoes Join, and that each path has one spelling
// (CleanPath), so that no rule can be avoided by spelling a path differently.
package action

import (
	"slices"
	"strings"
)

// Join returns the action string of a tool and its detail.
func Join(tool, detail string) string { return "tool:" + tool + ":" + detail }

// Bash is the prefix of the action of every shell command.
const Bash = "tool:bash:"

// Split splits an action string; ok is false if it is not one.
func Split(action string) (tool, detail string, ok bool) {
	rest, ok := strings.CutPrefix(action, "tool:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

// Words says what an action does, for people: a command as it is, of other tools the name and the detail.
func Words(action string) string {
	if command, ok := strings.CutPrefix(action, Bash); ok {
		return command
	}
	rest, ok := strings.CutPrefix(action, "tool:")
	if !ok {
		return action
	}
	tool, detail, _ := strings.Cut(rest, ":")
	return strings.TrimSpace(tool + " " + detail)
}

// IsShell reports whether the tool's detail is a shell command.
func IsShell(tool string) bool {
	return tool == "bash" || tool == "run_background" || tool == "run_concurrent"
}

var pathTools = []string{"read", "list_files", "search_files", "write", "edit", "apply_patch", "upload"}

// IsPath reports whether the tool's detail is a path.
func IsPath(tool string) bool { return slices.Contains(pathTools, tool) }
