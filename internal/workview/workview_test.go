package workview_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/work"
	"chorus/internal/workview"
)

// Every button that is offered can be pressed: the rules allow its step.
func TestActionsAreLegal(t *testing.T) {
	t.Parallel()
	steps := map[workview.Action]work.Step{workview.Approve: work.Approved, workview.Reject: work.AdminRestart, workview.Stop: work.AdminStop, workview.Restart: work.AdminRestart,
		workview.Skip: work.AdminSkip, workview.Reopen: work.AdminRestart}
	for _, state := range work.States() {
		task := work.Task{State: state, Branch: "b", Attempt: 1}
		for _, a := range workview.Actions(task) {
			step, moves := steps[a]
			if planned, ok := map[workview.Action]work.Step{workview.Approve: work.PlanApproved, workview.Reject: work.PlanRejected}[a]; ok && state == work.AwaitingPlanApproval {
				step = planned
			}
			if moves {
				if _, err := work.Next(state, step); err != nil {
					t.Errorf("%s offers %s: %v", state, a, err)
				}
			} else if !a.Reads() && a != workview.Edit {
				t.Errorf("nobody knows what %s does", a)
			}
			if a.Label() == "" || !a.Known() || !workview.Legal(task, a) {
				t.Errorf("%s in %s", a, state)
			}
		}
		if !workview.HasLook(state) {
			t.Errorf("%s has no look", state)
		}
	}
	if got := workview.Actions(work.Task{State: work.Blocked, Run: "r"}); slices.Contains(got, workview.Restart) {
		t.Error("what a worker still holds cannot be restarted")
	}
}

func TestCardSaysWhatMatters(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	stuck := make([]work.Task, 7)
	for i := range stuck {
		stuck[i].ID = string(rune('a' + i))
	}
	for name, c := range map[string]struct {
		f    workview.Facts
		want []string
		not  string
	}{
		"blocked": {workview.Facts{Task: work.Task{ID: "calm-otter", Title: "Do *it* @everyone <@1>", State: work.Blocked, Why: "line\ntwo", Moved: at, Retries: 3, MaxRetries: 3}, Stuck: stuck},
			[]string{`**Do \*it\* @everyone ‹@1›** is blocked <t:1000:R>`, "> line two", "7 tasks cannot continue without it: `a`, `b`, `c`, `d`, `e`, 2 more.", "3 of 3 tries failed"}, "<@1>"},
		"approvers": {workview.Facts{Task: work.Task{ID: "calm-otter", State: work.AwaitingApproval}, May: []string{"<@1>", "those with the role lead"}},
			[]string{"Only <@1> or those with the role lead may approve."}, "discord:"},
		"approval": {workview.Facts{Task: work.Task{ID: "calm-otter", State: work.AwaitingApproval, PR: "https://x/1"}, Result: &work.Result{Summary: "It is dark.", Files: []string{"a"}, Tokens: 12345, Cost: 20_000_000}},
			[]string{"It is dark.", "1 file changed, 12,345 tokens, $0.02", "https://x/1"}, ">"},
		"skipped": {workview.Facts{Task: work.Task{State: work.Completed, Why: "skipped by local:ada"}}, []string{"is done (skipped by local:ada)"}, "> skipped"},
		"paused":  {workview.Facts{Task: work.Task{State: work.Paused, NotBefore: at, Why: "rate limit"}}, []string{"It continues <t:1000:R>", "> rate limit"}, "**is"},
		"waiting": {workview.Facts{Task: work.Task{State: work.Defined}, Needs: []work.Task{{ID: "x", State: work.Completed}, {ID: "y", State: work.Ready}}}, []string{"It needs `y`."}, "`x`"},
	} {
		text := workview.Of(c.f).Text
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q lacks %q", name, text, w)
			}
		}
		if strings.Contains(text, c.not) {
			t.Errorf("%s: %q has %q", name, text, c.not)
		}
	}
}

// Labels fit into the tags of every platform, and every state has one.
func TestLabelsFit(t *testing.T) {
	t.Parallel()
	all := workview.Labels()
	if len(all) > 15 {
		t.Errorf("%d labels leave little room for those of people", len(all))
	}
	for i, l := range all {
		if n := len([]rune(l.Name)); n == 0 || n > 20 || l.Sign == "" || slices.ContainsFunc(all[:i], func(o workview.Label) bool { return o.Name == l.Name }) {
			t.Errorf("%+v", l)
		}
	}
	for _, state := range work.States() {
		if got := workview.LabelOf(state); !slices.ContainsFunc(all, func(l workview.Label) bool { return l.Name == got.Name }) || got.Over != (state == work.Completed) {
			t.Errorf("%s is labelled %+v", state, got)
		}
	}
}
