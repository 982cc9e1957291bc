package gate

import (
	"context"
	"slices"
	"strings"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/permit"
	"chorus/internal/sandbox"
	"chorus/internal/transcript"
)

// A started program that needs approval names all that a rule must allow for it to start unasked, and nothing else; or that no rule can.
func TestWhatAStartedProgramIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]sandbox.Exec{
		"of the machine":            {Names: []string{"git"}, Path: "/usr/bin/git", System: true, Argv: []string{"git", "tag", "x"}},
		"that no rule covers":       {Names: []string{"make"}, Path: "/usr/bin/make", System: true, Argv: []string{"make", "all"}},
		"with two names":            {Names: []string{"busybox", "vi"}, Path: "/bin/vi", System: true, Argv: []string{"vi", "f"}},
		"of the workspace":          {Names: []string{"git"}, Path: "./git", Argv: []string{"git", "tag", "x"}},
		"with its own executable":   {Names: []string{"git-tag"}, Path: "/usr/lib/git-core/git-tag", System: true, Argv: []string{"git-tag", "x"}},
		"whose first word deceives": {Names: []string{"git"}, Path: "/usr/bin/git", System: true, Argv: []string{"git-tag", "x"}},
	} {
		var kept []string
		asked := func(mode string) (list []Asked) {
			j := programsOf(t, permit.Rules{Allow: []string{"tool:bash:ls.*"}, Ask: []string{"tool:bash:git tag.*", "tool:bash:vi .*", "tool:bash:make.*", "tool:bash:[.]/git .*"}})
			j.Kept = func(q permit.Judgement, _ []transcript.Sender) string {
				if slices.ContainsFunc(q.Decisions, func(d permit.Decision) bool { return !slices.Contains(kept, d.Action) }) {
					return ""
				}
				return "kept"
			}
			answer, err := j.Programs(mode, func(_ context.Context, _ string, _ sandbox.Exec, why Asked) error {
				list = append(list, why)
				return nil
			}, func(context.Context, string, sandbox.Exec, approval.Audit) error { return nil })("call")(program)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if answer != nil {
				if err := answer(t.Context()); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			return list
		}
		first := asked(ChildrenJudge)
		if len(first) != 1 || len(first[0].Actions) == 0 || first[0].Each != "" {
			t.Fatalf("%s: %+v", name, first)
		}
		all := first[0].Actions
		if kept = all; len(asked(ChildrenJudge)) > 0 {
			t.Errorf("%s: it is asked for with rules for %q", name, all)
		}
		for i := range all {
			if kept = slices.Delete(slices.Clone(all), i, i+1); len(asked(ChildrenJudge)) == 0 {
				t.Errorf("%s: %q is not needed", name, all[i])
			}
		}
		kept = all
		if each := asked(ChildrenAsk); len(each) != 1 || !strings.Contains(each[0].Each, "each program approved") {
			t.Errorf("%s: %+v", name, each)
		}
	}
}

// programsOf is a judge under some rules who can ask people.
func programsOf(t *testing.T, rules permit.Rules) *Judge {
	t.Helper()
	profile, err := permit.Compile("some", rules)
	if err != nil {
		t.Fatal(err)
	}
	bot := &config.Bot{Permissions: "some"}
	j := newGate(bot, true)
	j.Limits = LimitsOf(bot, journal.Thread{}, func(string) (*permit.Profile, error) { return profile, nil })
	j.Work.Senders = []transcript.Sender{said(ada, chat.Terms{})}
	return j
}
