package acp

import (
	"fmt"
	"strings"
	"testing"

	"chorus/internal/chat"
)

// The work note "plan" is the editor's plan once it was written; what failed is none.
func TestPlans(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"action":"set","key":"plan","value":"# Steps\n- [x] look\n- [~] mend\n\n- [ ] test\n2. tell"}`: "look completed, mend in_progress, test pending, tell pending",
		`{"action":"clear"}`:                                  "",
		`{"action":"clear","key":"Plan"}`:                     "",
		`{"action":"set","key":"facts","value":"- [ ] none"}`: "no plan",
		`{"action":"get","key":"plan"}`:                       "no plan",
		`nonsense`:                                            "no plan",
	} {
		for _, outcome := range []chat.Outcome{chat.Ran, chat.Denied} {
			tr := newTranslator(func(name string, _ []byte) string { return name }, "/w")
			tr.event(chat.Event{Run: "r", Body: chat.RunStarted{Run: "r"}}, false)
			tr.event(chat.Event{Run: "r", Body: chat.Asked{Step: 0, Purpose: chat.ForTurn}}, false)
			tr.event(chat.Event{Run: "r", Body: chat.Said{Blocks: chat.Blocks{chat.ToolUse{ID: "a", Name: "work_notes", Args: []byte(args)}}, Stop: chat.StopTools}}, false)
			got := "no plan"
			for _, u := range tr.event(chat.Event{Run: "r", Body: chat.ToolRan{Call: "a", Outcome: outcome}}, false) {
				if u.Plan == nil {
					continue
				}
				var entries []string
				for _, e := range u.Plan.Entries {
					entries = append(entries, fmt.Sprintf("%s %s", e.Content, e.Status))
				}
				got = strings.Join(entries, ", ")
			}
			if expected := map[bool]string{true: want, false: "no plan"}[outcome == chat.Ran]; got != expected {
				t.Errorf("%s, %s: %q", args, outcome, got)
			}
		}
	}
}
