package background

import (
	"errors"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"hooks":[{"on":"output","pattern":"(?i)error","do":"notify_channel","maxFires":3}]}`:                                      "when it prints a line that matches /(?i)error/, tell people (at most 3 times, not more than once in 3m0s)",
		"```json\n{\"hooks\": [{\"on\": \"exit\", \"if\": \"failure\", \"do\": \"inject_context\", \"message\": \"fix it\"}]}\n```": "when it fails, tell this conversation, which answers: fix it",
	} {
		rules, err := Read(answer)
		if err != nil || len(rules) != 1 || rules[0].String() != want {
			t.Errorf("%s: %v %v", answer, rules, err)
		}
		again, err := Spelled(Spell(rules))
		if err != nil || again[0].String() != want {
			t.Errorf("spelled: %v %v", again, err)
		}
	}
	for answer, want := range map[string]string{
		"":                          "did not answer in the form",
		"Sure! I will tell you.":    "did not answer in the form",
		`{"hooks":[]}`:              "found nothing",
		`{"error":"no such event"}`: "cannot be said with hooks: no such event",
		`{"hooks":[{"on":"exit","do":"run","command":"rm -rf /"}]}`:                                                         "did not answer in the form",
		`{"hooks":[{"on":"moon","do":"stop_process"}]}`:                                                                     "an invalid hook",
		`{"hooks":[{"on":"exit","do":"stop_process"}]} and more`:                                                            "did not answer in the form",
		`{"hooks":[{"on":"output","pattern":"(","do":"stop_process"}]}`:                                                     "an invalid hook",
		`{"hooks":[` + strings.Repeat(`{"on":"exit","do":"notify_channel"},`, 11) + `{"on":"exit","do":"notify_channel"}]}`: "at most",
	} {
		if rules, err := Read(answer); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", answer, rules, err)
		}
	}
	for _, text := range []string{"", "[]", `[{"on":"exit"}]`, `{"on":"exit","do":"stop_process"}`, `[{"on":"exit","do":"stop_process","x":1}]`} {
		if rules, err := Spelled(text); err == nil {
			t.Errorf("%s: %v", text, rules)
		}
	}
	if _, err := Compile("make me a sandwich"); !errors.Is(err, ErrNotUnderstood) {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"hooks":[{"on":"exit","do":"notify_channel"}]}`)
	f.Fuzz(func(t *testing.T, answer string) {
		rules, err := Read(answer)
		if err == nil && len(rules) == 0 {
			t.Errorf("nothing of %q", answer)
		}
		for _, r := range rules {
			if _, err := r.Checked(); err != nil {
				t.Errorf("%q: %v", answer, err)
			}
		}
	})
}
