package chat

import "strings"

// SilentAnswer is the whole answer of an agent that has nothing to say: nobody is shown it, and nothing is posted.
const SilentAnswer = "[SILENT]"

// IsSilent reports whether an answer is that, whatever space stands around it.
func IsSilent(answer string) bool { return strings.TrimSpace(answer) == SilentAnswer }

// MayBeSilent reports whether an answer in the making can still become a silent one: it is not shown until that is known.
func MayBeSilent(answer string) bool {
	answer = strings.TrimLeft(answer, " \t\r\n")
	return strings.HasPrefix(SilentAnswer, strings.TrimRight(answer, " \t\r\n"))
}
