package work

import "strings"

// InTerminal separates, in a reason, the problem from what can be typed about it.
const InTerminal = " In a terminal: "

// Typed returns what people can type about it, or "". After it come the names of tools, for models.
func Typed(why string) string {
	_, after, _ := strings.Cut(why, InTerminal)
	before, _, _ := strings.Cut(after, " (tools: ")
	return before
}

// Reason returns why a task is in its state, without what can be typed about it, for places that have buttons.
func Reason(why string) string {
	before, _, _ := strings.Cut(why, InTerminal)
	return before
}
