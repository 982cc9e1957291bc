package toolcall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/chat"
	"chorus/internal/tool"
)

// fake is a tool that is a function.
type fake func(ctx context.Context) (tool.Result, error)

func (f fake) Spec() tool.Spec             { return tool.Spec{Name: "fake"} }
func (f fake) Access([]byte) []tool.Access { return nil }
func (f fake) Run(ctx context.Context, _ []byte) (tool.Result, error) {
	return f(ctx)
}

func runner() Runner {
	return Runner{Bounds: deadline.Defaults(), Now: time.Now, Progress: func(chat.ToolUse, string) {}}
}

func TestEveryCallHasAResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool   fake
		text   string
		failed bool
		err    bool
	}{
		"good":   {func(context.Context) (tool.Result, error) { return tool.OK("fine"), nil }, "fine", false, false},
		"no":     {func(context.Context) (tool.Result, error) { return tool.Fail("no such file"), nil }, "no such file", true, false},
		"broken": {func(context.Context) (tool.Result, error) { return tool.Result{}, errors.New("disk full") }, "the tool itself failed: disk full", true, true},
		"panics": {func(context.Context) (tool.Result, error) { panic("oh") }, "panic: oh", true, true},
	} {
		out := runner().Run(t.Context(), Call{Use: chat.ToolUse{ID: "1", Name: "fake"}, Tool: c.tool})
		if out.Ran.Call != "1" || out.Ran.Failed != c.failed || !strings.Contains(out.Ran.Blocks.Text(), c.text) || (out.Err != nil) != c.err {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func TestAnInterruptedCallSaysSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	wait := fake(func(ctx context.Context) (tool.Result, error) {
		cancel(errors.New("chorus is stopping"))
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})
	out := runner().Run(ctx, Call{Use: chat.ToolUse{ID: "1"}, Tool: wait})
	if out.Err != nil || out.Ran.Outcome != chat.Interrupted || out.Ran.Blocks.Text() != "interrupted: chorus is stopping" {
		t.Errorf("%+v", out)
	}
}

func TestOutcomesStandInOrder(t *testing.T) {
	t.Parallel()
	var calls []Call
	for i := range 3 * atOnce {
		calls = append(calls, Call{Use: chat.ToolUse{ID: fmt.Sprint(i)}, Tool: fake(func(context.Context) (tool.Result, error) { return tool.OK(fmt.Sprint(i)), nil })})
	}
	for i, out := range runner().RunAll(t.Context(), calls) {
		if out.Ran.Call != fmt.Sprint(i) || out.Ran.Blocks.Text() != fmt.Sprint(i) {
			t.Errorf("%d: %+v", i, out.Ran)
		}
	}
	if w := runner().Wait(calls...); w.For != "the tool  and 23 other calls" || w.Total != 3*(15*time.Minute+10*time.Second)+10*time.Second {
		t.Errorf("%+v", w)
	}
}

// A stop ended tools at once: one that ends within the grace is not disturbed, one that does
// not is interrupted then, and an abort has no grace.
func TestAStopLeavesToolsAGrace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause error
		takes time.Duration
		want  chat.Outcome
	}{
		"it ends":       {&deadline.Stopping{Tools: time.Minute}, 6 * time.Second, chat.Ran},
		"it does not":   {&deadline.Stopping{Tools: time.Second}, time.Minute, chat.Interrupted},
		"no grace":      {deadline.ErrStopping, 6 * time.Second, chat.Interrupted},
		"it is aborted": {errors.New("aborted"), 6 * time.Second, chat.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				slow := fake(func(ctx context.Context) (tool.Result, error) {
					cancel(c.cause)
					select {
					case <-time.After(c.takes):
						return tool.OK("done"), nil
					case <-ctx.Done():
						return tool.Result{}, ctx.Err()
					}
				})
				out := runner().Run(ctx, Call{Use: chat.ToolUse{ID: "1"}, Tool: slow})
				if out.Ran.Outcome != c.want {
					t.Errorf("%+v", out.Ran)
				}
			})
		})
	}
}

// A tool may say that its calls take longer than usual; shorter does not count.
func TestALimitOfItsOwn(t *testing.T) {
	t.Parallel()
	r := Runner{Bounds: deadline.Bounds{Tool: time.Minute, Grace: time.Second}}
	for limit, want := range map[time.Duration]time.Duration{0: time.Minute, time.Second: time.Minute, time.Hour: time.Hour} {
		one := Call{Tool: limited(limit)}
		if got := r.limit(one); got != want {
			t.Errorf("a call of %v may take %v, want %v", limit, got, want)
		}
		if got := r.Wait(one, Call{Tool: limited(0)}); got.Total < want+time.Second {
			t.Errorf("with %v it is waited %v in all", limit, got.Total)
		}
	}
}

// limited is a tool whose calls may take so long.
type limited time.Duration

func (l limited) Spec() tool.Spec                                { return tool.Spec{Name: "limited", Limit: time.Duration(l)} }
func (limited) Access([]byte) []tool.Access                      { return nil }
func (limited) Run(context.Context, []byte) (tool.Result, error) { return tool.Result{}, nil }
