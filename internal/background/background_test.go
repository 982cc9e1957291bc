package background

import (
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
)

var began = time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)

func number(n int) *int { return &n }

func process(t *testing.T, rules ...Rule) *Process {
	t.Helper()
	checked, err := Check(rules)
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{ID: "p", State: Running, Started: began}
	for _, r := range checked {
		p.Hooks = append(p.Hooks, Hook{Rule: r})
	}
	return p
}

func (p *Process) end(state State, exit int, at time.Time) {
	p.State, p.Exit, p.Ended = state, exit, at
}

func keys(fires []Fire) string {
	var out []string
	for _, f := range fires {
		out = append(out, f.Key())
	}
	return strings.Join(out, " ")
}

func TestExitHooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state State
		exit  int
		want  string
	}{{Exited, 1, "exit/1/1 exit/2/1"}, {Exited, 0, "exit/0/1 exit/2/1"}, {Killed, 0, "exit/1/1 exit/2/1"}, {Lost, 0, "exit/1/1 exit/2/1"}} {
		p := process(t, Rule{On: OnExit, If: SuccessOnly, Do: NotifyChannel}, Rule{On: OnExit, If: FailureOnly, Do: InjectContext}, Rule{On: "on_exit", Do: "spawn_branch"})
		if fires := p.Step(Look{Now: began.Add(time.Minute)}); len(fires) != 0 {
			t.Errorf("fired while it ran: %v", fires)
		}
		p.end(c.state, c.exit, began.Add(time.Minute))
		if got := keys(p.Step(Look{Now: began.Add(time.Minute)})); got != c.want {
			t.Errorf("%s %d: %s", c.state, c.exit, got)
		}
		if again := p.Step(Look{Now: began.Add(time.Hour)}); len(again) != 0 {
			t.Errorf("fired twice: %v", again)
		}
	}
}

// A match waits for the lines that follow it, and what comes too soon after another is counted and told with the next one.
func TestOutputHooks(t *testing.T) {
	t.Parallel()
	p := process(t, Rule{On: OnOutput, Pattern: "ERROR", Do: NotifyChannel})
	at := began
	look := func(later time.Duration, lines ...string) []Fire {
		at = at.Add(later)
		return p.Step(Look{Now: at, Lines: lines})
	}
	if f := look(0, "fine", "an ERROR", "another ERROR"); len(f) != 0 {
		t.Errorf("did not wait: %v", f)
	}
	if f := look(2 * time.Second); len(f) != 1 || f[0].Line != "an ERROR" || f[0].Key() != "output/0/1" {
		t.Errorf("%+v", f)
	}
	for range 3 {
		if f := append(look(10*time.Second, "ERROR"), look(2*time.Second)...); len(f) != 0 {
			t.Errorf("too soon: %+v", f)
		}
	}
	if f := append(look(3*time.Minute, "ERROR late"), look(2*time.Second)...); len(f) != 1 || f[0].Suppressed != 3 || f[0].N != 2 {
		t.Errorf("%+v", f)
	}
	if f := look(time.Hour, "ERROR last"); len(f) != 0 {
		t.Errorf("%+v", f)
	}
	p.end(Exited, 0, at)
	if f := look(0); len(f) != 1 || f[0].Line != "ERROR last" {
		t.Errorf("a match before the end is lost: %+v", f)
	}
	p = process(t, Rule{On: OnOutput, Pattern: "x", Do: StopProcess, Delay: number(0), MaxFires: number(2)})
	if n := len(look(0, "x")) + len(look(0, "x")) + len(look(0, "x")); n != 2 {
		t.Errorf("fired %d times", n)
	}
	p = process(t, Rule{On: OnOutput, Pattern: "x", Do: StopProcess, Delay: number(0)})
	fires := 0
	for range 2 * MaxFires {
		fires += len(look(time.Minute, "x"))
	}
	if fires != MaxFires {
		t.Errorf("fired %d times", fires)
	}
}

func TestTimeoutHooks(t *testing.T) {
	t.Parallel()
	p := process(t, Rule{On: OnTimeout, After: 60, Do: StopProcess})
	if f := p.Step(Look{Now: began.Add(59 * time.Second)}); len(f) != 0 {
		t.Errorf("%+v", f)
	}
	if f := p.Step(Look{Now: began.Add(time.Hour)}); keys(f) != "timeout/0/1" {
		t.Errorf("%+v", f)
	}
	p = process(t, Rule{On: OnTimeout, After: 60, Do: StopProcess})
	p.end(Exited, 0, began)
	if f := p.Step(Look{Now: began.Add(time.Hour)}); len(f) != 0 {
		t.Errorf("it was over: %+v", f)
	}
}

func TestRulesThatCannotBe(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]Rule{
		"exit, output or timeout": {On: "full moon", Do: StopProcess}, "needs a pattern": {On: OnOutput, Do: StopProcess}, "cannot be read": {On: OnOutput, Pattern: "(", Do: StopProcess},
		"needs the seconds": {On: OnTimeout, Do: StopProcess}, "any, success or failure": {On: OnExit, If: "maybe", Do: StopProcess}, "must do one of": {On: OnExit, Do: "dance"},
		"0 or more": {On: OnExit, Do: StopProcess, Interval: number(-1)}, "at most 4000": {On: OnExit, Do: InjectContext, Message: strings.Repeat("x", 5000)},
	} {
		if _, err := Check([]Rule{r}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if _, err := Check(make([]Rule, MaxHooks+1)); err == nil {
		t.Error("any number of hooks")
	}
	if rules, err := Check(nil); err != nil || len(rules) != 1 || rules[0].Do != NotifyChannel || rules[0].If != AnyExit {
		t.Errorf("%+v %v", rules, err)
	}
}

func TestInstructions(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"":                         "",
		"tell me when it is done":  "when it ends, tell people",
		"Let me know if it fails.": "when it fails, tell people",
		"notify the channel":       "when it ends, tell people",
		"When it fails, fix the error and run it again":                     "when it fails, tell this conversation, which answers: fix the error and run it again",
		"if the build succeeds, deploy it":                                  "when it ends with exit code 0, tell this conversation, which answers: deploy it",
		"stop it after 10 minutes":                                          "when it still runs after 10m0s, stop the process",
		"if it takes longer than 1.5 hours, tell me":                        "when it still runs after 1h30m0s, tell people",
		"when it prints 'listening on', run the tests":                      "when it prints a line that matches /(?i)listening on/, tell this conversation, which answers: run the tests (not more than once in 1m0s)",
		"whenever it prints /panic: .*; exit/, kill it":                     "when it prints a line that matches /panic: .*; exit/, stop the process",
		"if it crashes, start a new thread to find out why":                 "when it fails, begin a new conversation: find out why",
		"once it ends, stop the run":                                        "when it ends, stop the run of this conversation",
		"tell me when it is done; if it fails, look at the log":             "when it ends, tell people | when it fails, tell this conversation, which answers: look at the log",
		"Tell me when it is done and if it fails look at the log.":          "when it ends, tell people | when it fails, tell this conversation, which answers: look at the log",
		"- when it ends, tell me\n- when it fails, ask the agent to fix it": "when it ends, tell people | when it fails, tell this conversation, which answers: fix it",
	} {
		rules, err := Compile(words)
		if err != nil {
			t.Errorf("%s: %v", words, err)
		}
		var got []string
		for _, r := range rules {
			got = append(got, r.String())
		}
		if text := strings.Join(got, " | "); text != want {
			t.Errorf("%s:\n got %s\nwant %s", words, text, want)
		}
	}
	for _, words := range []string{"make me a sandwich", "if it rains, tell me when it prints /(/"} {
		if rules, err := Compile(words); err == nil {
			t.Errorf("%s: %v", words, rules)
		}
	}
}

func TestContextWaits(t *testing.T) {
	t.Parallel()
	if r := (Rule{On: OnExit, If: AnyExit, Do: InjectContext}); !r.Waits() || r.String() != "when it ends, tell this conversation, which answers when it is next asked" {
		t.Errorf("%s", r)
	}
	if (Rule{On: OnExit, Do: InjectContext, Message: "look"}).Waits() || (Rule{On: OnExit, Do: SpawnThread}).Waits() {
		t.Error("what is to be done waits")
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("when it prints 'a', tell me and if it fails, stop it")
	f.Fuzz(func(t *testing.T, words string) {
		rules, err := Compile(words)
		if err != nil {
			return
		}
		for _, r := range rules {
			if _, err := r.Checked(); err != nil {
				t.Errorf("%q: %v", words, err)
			}
		}
	})
}

func TestDepth(t *testing.T) {
	t.Parallel()
	p := &Process{ID: "1", Owner: chat.Principal{Kind: chat.LocalUser, ID: "ada"}}
	for n := 1; n <= 4; n++ {
		if got := p.Principal().Depth(); got != n {
			t.Errorf("depth %d, want %d", got, n)
		}
		if p.Principal().Person().ID != "ada" {
			t.Errorf("%+v acts for nobody", p.Principal())
		}
		p = &Process{ID: "next", Owner: p.Principal()}
	}
}
