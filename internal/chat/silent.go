package chat

import "strings"

// SilentAnswer is the whole answer of an agent that has nothing to say. It is neither shown nor posted.
const SilentAnswer = "[SILENT]"

// IsSilent reports whether an answer is SilentAnswer, ignoring surrounding space.
func IsSilent(answer string) bool { return strings.TrimSpace(answer) == SilentAnswer }

// MayBeSilent reports whether an unfinished answer can still become
// SilentAnswer. Until that is decided, it is not shown.
func MayBeSilent(answer string) bool {
	answer = strings.TrimLeft(answer, " \t\r\n")
	return strings.HasPrefix(SilentAnswer, strings.TrimRight(answer, " \t\r\n"))
}
