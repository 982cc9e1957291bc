package shell

import (
	"slices"
	"strings"
)

// isPlain reports whether a command only controls the script. Next to other commands it needs no rule.
func isPlain(prog string, words []word) bool {
	switch prog {
	case ":", "true", "false", "exit", "return", "break", "continue", "wait", "shift", "getopts", "umask", "local", "times":
		return true
	case "[", "test":
		return !slices.ContainsFunc(words, func(x word) bool { return x.known && runsWhenEvaluated(x.value) })
	case "set":
		return !slices.ContainsFunc(words[1:], func(x word) bool { return !x.known })
	}
	return false
}

// changesNames returns why a builtin may run something other than it seems to, or "".
func changesNames(prog string, args []word) string {
	switch prog {
	case "alias", "enable":
		if len(args) > 0 {
			return prog + " changes what names mean"
		}
	case "mapfile", "readarray":
		if slices.ContainsFunc(args, func(x word) bool { return strings.HasPrefix(x.value, "-C") }) {
			return "a callback"
		}
	case "printf", "read", "let", "unset", "[", "test":
		if slices.ContainsFunc(args, func(x word) bool { return x.known && runsWhenEvaluated(x.value) && strings.Contains(x.value, "[") }) {
			return "quoted code in a subscript"
		}
	}
	return ""
}
