package work

import "strings"

// InTerminal stands in a reason between what is the matter and what can be typed about it.
const InTerminal = " In a terminal: "

// Typed is what can be typed about it, for people; "": nothing. Behind it stand the names of tools, for models.
func Typed(why string) string {
	_, after, _ := strings.Cut(why, InTerminal)
	before, _, _ := strings.Cut(after, " (tools: ")
	return before
}

// Reason is why a task stands where it stands, without what can be typed about it: for places that have buttons.
func Reason(why string) string {
	before, _, _ := strings.Cut(why, InTerminal)
	return before
}
