package shell

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/host"
	"chorus/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func set(t *testing.T, run sandbox.Executor, opts Options) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(New(run, opts))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func call(t *testing.T, s *tool.Set, name, args string) tool.Result {
	t.Helper()
	b, corrected, err := s.Resolve(name, []byte(args))
	if err != nil {
		return tool.Fail(err.Error())
	}
	res, err := b.Run(tool.WithCall(t.Context(), tool.Call{ID: "c1"}), corrected)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestBash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "my sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := set(t, host.New(os.Environ()), Options{Dir: dir, Env: []string{"EXTRA=1"}})
	tests := []struct {
		name, tool, args, want string
		failed                 bool
	}{
		{"fine", "bash", `{"command":"echo hi; echo $EXTRA"}`, "hi\n1", false},
		{"both streams in order", "bash", `{"command":"echo a; echo b >&2; echo c"}`, "a\nb\nc", false},
		{"quiet", "bash", `{"command":"true"}`, "(no output)", false},
		{"exit code", "bash", `{"command":"echo no; exit 42"}`, "no\n[exit code 42]", false},
		{"only a code", "bash", `{"command":"exit 1"}`, "[exit code 1]", false},
		{"timeout", "bash", `{"command":"echo part; sleep 30","timeout":1.5}`, "part\n[timed out after 1.5s; the command and its children were ended, a longer timeout may be given]", true},
		{"timeout as text", "bash", `{"command":"sleep 30","timeout":"0.2"}`, "[timed out after 0.2s; the command and its children were ended, a longer timeout may be given]", true},
		{"background", "bash", `{"command":"sleep 300 >/dev/null 2>&1 & echo on"}`, "on\n[1 background process was ended with the command]", false},
		{"many lines", "bash", `{"command":"cat <<E\nx\nE\nexit 0"}`, "x", false},
		{"empty", "bash", `{"command":" "}`, "The command is empty.", true},
		{"their command", "run_command", `{"command":"echo a; pwd | sed 's/.*\\///'","cwd":"my sub","timeoutSec":5}`, "a\nmy sub", false},
		{"their program", "RunCommand", `{"exe":"printf","args":["%s|","a b","it's","-n","$HOME"],"timeoutSec":5}`, "a b|it's|-n|$HOME|", false},
		{"their program elsewhere", "RunCommand", `{"exe":"ls","args":["-d","."],"cwd":"my sub"}`, ".", false},
		{"their program above", "RunCommand", `{"command":"pwd","cwd":"../.."}`, `Invalid arguments for RunCommand: 'cwd' "../.." is outside of the workspace; it must be a folder in it`, true},
		{"their program far away", "run_command", `{"exe":"pwd","cwd":"/"}`, `Invalid arguments for run_command: 'cwd' "/" is outside of the workspace; it must be a folder in it`, true},
		{"both shapes", "RunCommand", `{"exe":"ls","command":"ls"}`, "Invalid arguments for RunCommand: give either 'command' or 'exe' with 'args'", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := call(t, s, tt.tool, tt.args)
			if got := res.Blocks.Text(); got != tt.want || res.Failed != tt.failed {
				t.Errorf("got %q failed=%v, want %q failed=%v", got, res.Failed, tt.want, tt.failed)
			}
		})
	}
}

// A command that ended with another code than 0 was told to the model as an error; it is a result with output and code.
func TestAnExitCodeIsNoError(t *testing.T) {
	t.Parallel()
	s := set(t, host.New(os.Environ()), Options{Dir: t.TempDir()})
	res := call(t, s, "bash", `{"command":"echo found nothing; exit 3"}`)
	if text := res.Blocks.Text(); res.Failed || res.Exit != 3 || text != "found nothing\n[exit code 3]" {
		t.Errorf("failed=%v exit=%d %q", res.Failed, res.Exit, text)
	}
	if res := call(t, s, "bash", `{"command":"sleep 30","timeout":0.2}`); !res.Failed || res.Exit != 0 {
		t.Errorf("after a timeout: failed=%v exit=%d", res.Failed, res.Exit)
	}
}

// Whoever asks for it is told what was written on each stream.
func TestStreamsApart(t *testing.T) {
	t.Parallel()
	b, args, err := set(t, host.New(os.Environ()), Options{Dir: t.TempDir()}).Resolve("bash", []byte(`{"command":"echo fine; echo bad >&2; exit 3"}`))
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr string
	res, err := b.Run(tool.WithCall(t.Context(), tool.Call{ID: "c1", Streams: func(out, bad string) { stdout, stderr = out, bad }}), args)
	if err != nil || res.Exit != 3 || stdout != "fine\n" || stderr != "bad\n" || !strings.Contains(res.Blocks.Text(), "fine") || !strings.Contains(res.Blocks.Text(), "bad") {
		t.Errorf("%q, %q, %+v, %v", stdout, stderr, res, err)
	}
}

func TestLongOutputIsKept(t *testing.T) {
	t.Parallel()
	var kept string
	s := set(t, host.New(os.Environ()), Options{Dir: t.TempDir(), Keep: func(_ context.Context, id, text string) (string, error) {
		kept = text
		return "@outputs/" + id + ".txt", nil
	}})
	res := call(t, s, "bash", `{"command":"seq 5000; exit 3"}`)
	text := res.Blocks.Text()
	if !strings.HasPrefix(text, "[Showing lines 3001-5000 of 5000. Full output: @outputs/c1.txt]\n3001\n") || !strings.HasSuffix(text, "5000\n[exit code 3]") {
		t.Errorf("got %.100q … %q", text, text[len(text)-40:])
	}
	if strings.Count(kept, "\n") != 5000 {
		t.Errorf("kept %d lines", strings.Count(kept, "\n"))
	}
}

func TestAbortKeepsWhatCame(t *testing.T) {
	t.Parallel()
	b := New(host.New(os.Environ()), Options{Dir: t.TempDir()})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx = tool.WithCall(ctx, tool.Call{Progress: func(text string) {
		if strings.Contains(text, "begun") {
			cancel()
		}
	}})
	res, err := b.Run(ctx, []byte(`{"command":"echo begun; sleep 300"}`))
	if err != nil || !res.Failed || res.Blocks.Text() != "begun\n[aborted; the command and its children were ended]" {
		t.Errorf("got %q, %v", res.Blocks.Text(), err)
	}
}

func TestAccessIsWhatRuns(t *testing.T) {
	t.Parallel()
	s := set(t, nil, Options{})
	tests := []struct{ name, args, want string }{
		{"bash", `{"command":"ls | wc"}`, "ls | wc"},
		{"run_command", `{"command":"a; b","cwd":"x y"}`, "cd 'x y' && {\na\nb\n}"},
		{"RunCommand", `{"exe":"rm","args":["-rf","a b","--"],"cwd":"sub"}`, "cd sub && rm -rf 'a b' --"},
		{"RunCommand", `{"exe":"echo","args":["","a'b"]}`, `echo '' 'a'\''b'`},
	}
	for _, tt := range tests {
		b, args, err := s.Resolve(tt.name, []byte(tt.args))
		if err != nil {
			t.Fatal(err)
		}
		got := b.Access(args)
		if len(got) != 1 || got[0] != (tool.Access{Tool: "bash", Detail: tt.want, Command: tt.want}) {
			t.Errorf("%s: %+v", tt.args, got)
		}
	}
	if got := s.Label("bash", []byte(`{"command":"make test\necho"}`)); got != "$ make test …" {
		t.Errorf("label %q", got)
	}
	if got := s.Label("bash", []byte(`{"command":"x","description":"Run the tests"}`)); got != "Run the tests" {
		t.Errorf("label %q", got)
	}
}

func TestTimeoutLimits(t *testing.T) {
	t.Parallel()
	for asked, want := range map[float64]time.Duration{
		0: 120 * time.Second, -1: 120 * time.Second, 0.25: 250 * time.Millisecond, 5: 5 * time.Second, 600: 600 * time.Second, 1e300: 600 * time.Second, 1e-9: time.Millisecond,
	} {
		if got := seconds(asked); got != want {
			t.Errorf("%v: %s, want %s", asked, got, want)
		}
	}
}

func TestProgressIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		p := &progress{send: func(text string) { sent = append(sent, text) }}
		for range 1000 {
			p.add("0123456789")
		}
		if len(sent) != burst+2 { // 10,000 bytes: the burst, then one for each full batch
			t.Errorf("a flood was sent in %d pieces", len(sent))
		}
		time.Sleep(interval) // the bubble's clock
		p.add("late")
		if last := sent[len(sent)-1]; !strings.HasSuffix(last, "late") {
			t.Errorf("after a pause the next output is not shown: %q", last)
		}
	})
}
