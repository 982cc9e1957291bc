package chat

import "strings"

// The modes, in the order of a piece of work.
const (
	ModePlan      = "plan"
	ModeReview    = "review"
	ModeImplement = "implement"
	ModeVerify    = "verify"
)

// NoMode is what people choose to end a mode. It is recorded as an empty mode.
const NoMode = "off"

// Mode says what kind of work an agent does, as people choose it.
type Mode struct{ Name, About string }

// Modes lists every mode, in the order of a piece of work.
func Modes() []Mode {
	return []Mode{{ModePlan, "reads and plans, changes nothing"}, {ModeReview, "reads and judges, changes nothing"}, {ModeImplement, "follows a plan"},
		{ModeVerify, "reads and runs commands to check, changes no files"}}
}

// ModeNames lists the names of every mode, in the same order.
func ModeNames() []string {
	var out []string
	for _, m := range Modes() {
		out = append(out, m.Name)
	}
	return out
}

// ModeWords names every mode in a sentence: "plan, review, implement or verify". last is the word before the last of them.
func ModeWords(last string) string {
	names := ModeNames()
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + " " + last + " " + names[n]
}
