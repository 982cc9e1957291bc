package runner

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/hook"
	"chorus/internal/polltest"
)

// The defects that hooks of other programs had, and the test here that each of them would fail. A test is the name of a
// function in a package's folder, or a line of a story.
var defects = []struct{ defect, in, test string }{
	{"a trigger that is no object is accepted, and makes every look and every event fail", "internal/hook", "TestTriggersThatCannotBeRunAreRefused"},
	{"one hook that cannot be read keeps those behind it from running", "internal/store/hooks", "TestAHookThatCannotBeReadHoldsUpNothing"},
	{"steps and actions are not checked when they are made", "internal/hook", "TestStepsAreChecked"},
	{"llm_config null is kept as a text and makes later runs fail", "testdata/stories/hook_defects.txtar", "chorus hook edit worker --llm null"},
	{"list_hooks does not show steps and template", "testdata/stories/hook_defects.txtar", "promptTemplate~the build"},
	{"list_hook_runs shows neither prompt nor response", "testdata/stories/hook_defects.txtar", "json prompt~ response="},
	{"deleting a hook leaves its run going", "internal/hook/runner", "TestDeletingAHookEndsItsRun"},
	{"a hook that is off can be fired", "internal/hook", "TestAdmission"},
	{"fire ignores the limit on runs at the same time", "internal/hook/runner", "TestAFiredHookWaitsForItsTurn"},
	{"a fired hook counts as running after its end", "internal/hook/runner", "TestAHookCanBeFiredAgainAtOnce"},
	{"an interval of a minute with the default cooldown runs once an hour", "internal/hook/runner", "TestAnIntervalIsNotHeldUpByACooldown"},
	{"a hook that never ran runs at the first look", "internal/hook/runner", "TestANewHookWaitsForItsTime"},
	{"event names with dots and with underscores are different", "internal/hook", "TestTriggers"},
	{"nothing brings events, so that event hooks never run", "internal/hook/runner", "TestAnEventIsARun"},
	{"events of projects that the owner may not see trigger a hook", "internal/hook/runner", "TestEventsThatTheOwnerMayNotSeeTriggerNothing"},
	{"events that come while the limit is reached are lost", "internal/hook/runner", "TestLimitsHold"},
	{"triggers that are left out leave no trace", "internal/store/hooks", "TestTriggersBecomeRunsOnce"},
	{"the last time is written before the run: a crash loses it", "internal/hook/runner", "TestKilledBetweenTriggerAndRun"},
	{"a crash runs a command a second time", "internal/hook/runner", "TestKilledWhileACommandRan"},
	{"a restart fires twice", "internal/hook/runner", "TestRestartStorm"},
	{"skip_llm_if_empty holds for every page, diff and query", "internal/hook", "TestSkipConditions"},
	{"read_file reads any file of the machine", "testdata/stories/hook_defects.txtar", "no rule of profile standard allows tool:read:/etc/passwd"},
	{"git_diff assumes main and leaves out what is not committed", "internal/tool/git", "TestCompareShowsWhatIsNotCommitted"},
	{"http reaches the private network", "testdata/stories/hook_steps.txtar", "is not fetched"},
	{"a shell step has no limit of time", "testdata/stories/hook_defects.txtar", "exit_code.*-1"},
	{"what a template is filled with is read as a template", "internal/hook", "TestTemplates"},
	{"whoever causes an event writes commands", "internal/hook", "TestStepsAreChecked"},
	{"limits on what a run may spend are kept and never looked at", "testdata/stories/hook_defects.txtar", "budget"},
	{"tokens are guessed from lengths, and nobody is billed", "testdata/stories/hook_defects.txtar", "tokensUsed"},
	{"what was done is never written down", "testdata/stories/hook_defects.txtar", "actionsTaken"},
	{"an exception of the model loses the run", "internal/hook/runner", "TestAModelThatFails"},
	{"long results are not cut", "internal/hook", "TestRenderedTextIsBounded"},
	{"chains of hooks have no end, since the depth is not passed on", "internal/hook", "TestTriggeringEnds"},
	{"a hook triggers itself", "internal/hook/runner", "TestAHookIsNotTriggeredByItself"},
	{"a hook's run has all rights", "internal/hook", "TestARunActsForItsOwner"},
	{"nobody may answer what a hook's run asks", "testdata/stories/hook_defects.txtar", "chorus approvals approve"},
	{"two hooks of one name overwrite each other", "testdata/stories/hook_defects.txtar", "id=worker-2"},
	{"hooks spend while nothing happens", "internal/hook/runner", "TestAnIdleWeekAsksNoModel"},
	{"an old or repeated webhook is taken", "testdata/stories/clients_webhooks.txtar", "the same again"},
}

func TestEveryDefectHasItsTest(t *testing.T) {
	t.Parallel()
	for _, d := range defects {
		at := filepath.Join("..", "..", "..", filepath.FromSlash(d.in))
		files := []string{at}
		want := d.test
		if !strings.HasSuffix(d.in, ".txtar") {
			files, _ = filepath.Glob(filepath.Join(at, "*_test.go"))
			want = "func " + d.test + "("
		}
		found := false
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			found = found || strings.Contains(string(data), want)
		}
		if !found {
			t.Errorf("%s: there is no %s in %s", d.defect, d.test, d.in)
		}
	}
}

func (b *bench) fire(h hook.Hook, key string) hook.Outcome {
	b.t.Helper()
	run, err := hook.NewRun(h, "manual", key, ada, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := b.db.TriggerHook(b.t.Context(), hook.Triggered{Hook: h, Run: run, Manual: true, At: b.clock()})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestDeletingAHookEndsItsRun(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	h := b.hook(hook.Hook{ID: "h", Definition: hook.Definition{Trigger: onCompleted, Steps: []hook.Step{{Type: hook.Shell, Command: "x"}}, Template: "x"}})
	begun, ended := make(chan struct{}), make(chan struct{})
	w.step = func(ctx context.Context, _ hook.Run) hook.Result {
		close(begun)
		<-ctx.Done()
		close(ended)
		return hook.Result{}
	}
	b.fire(h, "k")
	r := b.runner(w)
	if _, err := r.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-begun
	if there, err := b.db.RemoveHook(t.Context(), h.ID); err != nil || !there {
		t.Fatal(there, err)
	}
	r.Cancel(h.ID)
	<-ended
	r.Wait()
	if len(w.asked) > 0 {
		t.Error("it asked after it was deleted")
	}
}

func TestAFiredHookWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	release := make(chan struct{})
	w.step = func(context.Context, hook.Run) hook.Result { <-release; return hook.Result{} }
	r := b.runner(w)
	for _, id := range []string{"a", "b", "c", "d"} {
		b.fire(b.hook(hook.Hook{ID: id, Definition: hook.Definition{Trigger: onCompleted, Steps: []hook.Step{{Type: hook.Shell, Command: "x"}}, Template: "x"}}), "k")
	}
	if _, err := r.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "those that have their turn have begun", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.atOnce == hook.AtOnce
	})
	close(release)
	r.Wait()
	b.look(r)
	if w.most > hook.AtOnce || len(w.asked) != 4 {
		t.Errorf("%d at once, %d asked", w.most, len(w.asked))
	}
}

func TestAHookCanBeFiredAgainAtOnce(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	h := b.hook(hook.Hook{ID: "h", Name: "h", Definition: hook.Definition{Trigger: onCompleted, Template: "x", Cooldown: time.Hour}})
	r := b.runner(w)
	if out := b.fire(h, "first"); out.Why != "" {
		t.Fatal(out)
	}
	if out := b.fire(h, "second"); out.Why != "Hook 'h' is already running" {
		t.Errorf("%+v", out)
	}
	b.look(r)
	if out := b.fire(h, "third"); out.Why != "" {
		t.Errorf("after its end: %+v", out)
	}
	b.look(r)
	if len(w.asked) != 2 {
		t.Error(len(w.asked))
	}
}

func periodic(t *testing.T, b *bench, text string) hook.Trigger {
	t.Helper()
	trigger, err := hook.ParseTrigger([]byte(text), EventTypes(), b.clock())
	if err != nil {
		t.Fatal(err)
	}
	return trigger
}

func TestAnIntervalIsNotHeldUpByACooldown(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	def := hook.Definition{Trigger: periodic(t, b, `{"type":"periodic","interval_seconds":60}`), Template: "x", Cooldown: time.Hour}
	if err := def.Check(); err == nil || !strings.Contains(err.Error(), "holds up an interval") {
		t.Errorf("an hour of rest with an interval of a minute: %v", err)
	}
	def.Cooldown = 0
	b.hook(hook.Hook{ID: "h", Definition: def})
	r := b.runner(w)
	for range 10 {
		b.pass(time.Minute)
		b.look(r)
	}
	if len(w.asked) != 10 {
		t.Errorf("%d runs in ten minutes", len(w.asked))
	}
}

func TestANewHookWaitsForItsTime(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	b.hook(hook.Hook{ID: "h", Definition: hook.Definition{Trigger: periodic(t, b, `{"type":"periodic","interval_seconds":3600}`), Template: "x"}})
	r := b.runner(w)
	b.look(r)
	b.pass(59 * time.Minute)
	b.look(r)
	if len(w.asked) != 0 {
		t.Error("it ran before its time")
	}
	b.pass(time.Minute)
	b.look(r)
	if len(w.asked) != 1 {
		t.Error(len(w.asked))
	}
}

func TestEventsThatTheOwnerMayNotSeeTriggerNothing(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	w.blind = true
	b.hook(hook.Hook{ID: "h", Definition: hook.Definition{Trigger: onCompleted, Template: "x"}})
	b.ended(1, chat.Principal{Kind: "discord", ID: "2"})
	b.look(b.runner(w))
	if runs := b.runs("h"); len(runs) != 0 {
		t.Errorf("%+v", runs)
	}
}
