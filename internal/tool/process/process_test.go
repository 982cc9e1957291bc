package process_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"chorus/internal/background"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/host"
	"chorus/internal/tool"
	"chorus/internal/tool/process"
)

// kept remembers what was started.
type kept struct {
	list    []background.Process
	started sandbox.Background
	read    []string // instructions that a model was given
}

func (k *kept) Start(_ context.Context, p background.Process, b sandbox.Background) (background.Process, error) {
	p.State, p.Started = background.Running, time.Now()
	k.list, k.started = append(k.list, p), b
	return p, nil
}
func (k *kept) List(context.Context) ([]background.Process, error) { return k.list, nil }
func (k *kept) NewID() string                                      { return "p1" }
func (k *kept) Tail(string, int, int) (string, error)              { return "listening", nil }
func (k *kept) Stop(background.Process) (bool, error)              { return true, nil }
func (k *kept) Understand(_ context.Context, words string) ([]background.Rule, error) {
	k.read = append(k.read, words)
	if strings.Contains(words, "sandwich") {
		return nil, errors.New("it cannot be said with hooks: it is no sandwich")
	}
	return background.Check([]background.Rule{{On: background.OnOutput, Pattern: "90%", Do: background.NotifyChannel}})
}

func (k *kept) AddHooks(_ context.Context, p background.Process, rules []background.Rule) (background.Process, error) {
	k.list[0].Hooks = append(k.list[0].Hooks, background.Hook{Rule: rules[0]})
	return p, nil
}

func setup(t *testing.T) (*tool.Set, *kept) {
	t.Helper()
	k := &kept{}
	set, err := tool.NewSet(process.New(host.New(os.Environ()), k, process.Options{Dir: t.TempDir()})...)
	if err != nil {
		t.Fatal(err)
	}
	return set, k
}

func call(t *testing.T, set *tool.Set, name, args string) string {
	t.Helper()
	one, corrected, err := set.Resolve(name, []byte(args))
	if err != nil {
		return err.Error()
	}
	if err := set.Validate(one, corrected); err != nil {
		return err.Error()
	}
	res, err := one.Run(tool.WithCall(t.Context(), tool.Call{ID: "c1"}), corrected)
	if err != nil {
		t.Fatal(err)
	}
	return res.Blocks.Text()
}

func TestRunBackground(t *testing.T) {
	t.Parallel()
	set, k := setup(t)
	for args, want := range map[string]string{
		`{"command":" "}`: "The command is empty.",
		`{"command":"make","instructions":"make me a sandwich"}`:       "it is no sandwich",
		`{"command":"make","hooks":[{"on":"full moon","do":"dance"}]}`: "exit, output or timeout",
		`{"command":"make","working_directory":"../.."}`:               "must be a folder of the workspace",
	} {
		if got := call(t, set, "run_background", args); !strings.Contains(got, want) {
			t.Errorf("%s: %s", args, got)
		}
	}
	if len(k.list) != 0 {
		t.Fatalf("started: %+v", k.list)
	}
	if got := call(t, set, "process_list", `{}`); got != "Nothing was left running." {
		t.Error(got)
	}
	got := call(t, set, "run_background", `{"command":"make   all","working_directory":"sub","instructions":"when it fails, fix it","hooks":[{"on":"timeout","after":60,"do":"stop_process"}]}`)
	if !strings.Contains(got, "Process p1 runs") || !strings.Contains(got, "- when it still runs after 1m0s, stop the process\n- when it fails, tell this conversation, which answers: fix it") {
		t.Error(got)
	}
	if k.started.Shell != "cd sub && {\nmake all\n}" || k.started.Call != "process/p1" || k.started.Timeout != 24*time.Hour || k.list[0].Command != k.started.Shell {
		t.Errorf("%+v", k.started)
	}
	for name, c := range map[string][2]string{
		"process_list": {`{}`, "p1: running for"}, "process_logs": {`{"id":"p1"}`, "listening"}, "process_kill": {`{"id":"p1"}`, "asked to end"},
		"add_process_hooks": {`{"id":"p1","instructions":"tell me when it is done"}`, "- when it ends, tell people"},
	} {
		if got := call(t, set, name, c[0]); !strings.Contains(got, c[1]) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := call(t, set, "process_kill", `{"id":"somebody-elses"}`); !strings.Contains(got, "no process") {
		t.Error(got)
	}
}

// What is judged is what runs, in its canonical text, and hooks are shown with the question.
func TestWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	set, _ := setup(t)
	one, _, err := set.Resolve("run_background", []byte(`{"command":"make   all"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := one.Access([]byte(`{"command":"make   all"}`)); len(got) != 1 || got[0].Action() != "tool:run_background:make all" || got[0].Command != "make all" {
		t.Errorf("%+v", got)
	}
	if got := one.(tool.Previewer).Preview(t.Context(), []byte(`{"command":"make"}`)); got != "hooks:\n- when it ends, tell people" {
		t.Error(got)
	}
	one, _, _ = set.Resolve("run_concurrent", []byte(`{"commands":["a","b"]}`))
	if got := one.Access([]byte(`{"commands":["a","rm  -rf  x"]}`)); len(got) != 2 || got[1].Action() != "tool:run_concurrent:rm -rf x" {
		t.Errorf("%+v", got)
	}
}

func TestRunConcurrent(t *testing.T) {
	t.Parallel()
	set, _ := setup(t)
	began := time.Now()
	got := call(t, set, "run_concurrent", `{"commands":["sleep 0.5; echo one","sleep 0.5; exit 3","sleep 30"],"timeout":1}`)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("one after the other: %s", took)
	}
	for _, want := range []string{"## 1. sleep 0.5", "[exit code 0,", "one", "## 2.", "[exit code 3,", "(no output)", "## 3. sleep 30\n[timed out after 1s]"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if got := call(t, set, "run_concurrent", `{"commands":[]}`); !strings.Contains(got, "1 to 10") {
		t.Error(got)
	}
}

// What the grammar understands no model reads; the rest a model does, and what came of it is told.
func TestInstructionsThatAModelReads(t *testing.T) {
	t.Parallel()
	set, k := setup(t)
	if got := call(t, set, "run_background", `{"command":"make","instructions":"tell me when it is done"}`); !strings.Contains(got, "when it ends, tell people") || len(k.read) != 0 {
		t.Errorf("%s, read %v", got, k.read)
	}
	const odd = `"instructions":"the disk must not get fuller than ninety percent, ping me then"`
	if got := call(t, set, "run_background", `{"command":"make",`+odd+`,"hooks":[{"on":"exit","do":"stop_thread"}]}`); !strings.Contains(got, "matches /90%/, tell people") || !strings.Contains(got, "when it ends, stop the run") {
		t.Error(got)
	}
	if got := call(t, set, "add_process_hooks", `{"id":"p1",`+odd+`}`); !strings.Contains(got, "Added:\n- when it prints a line that matches /90%/") || len(k.read) != 2 {
		t.Errorf("%s, read %v", got, k.read)
	}
	one, args, err := set.Resolve("run_background", []byte(`{"command":"make",`+odd+`}`))
	if err != nil {
		t.Fatal(err)
	}
	if shown := one.(tool.Previewer).Preview(t.Context(), args); !strings.Contains(shown, "a model reads the instructions") || len(k.read) != 2 {
		t.Errorf("%q, read %v", shown, k.read)
	}
}
