package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test's own binary be the program, so that the tests need not build it.
func TestMain(m *testing.M) {
	if os.Getenv("TESTRUN_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestRun plays the tiny module below testdata, whose packages each go wrong in their own way.
func TestRun(t *testing.T) {
	t.Parallel()
	tool, err := exec.Command("go", "tool", "-n", "gotestsum").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args   string
		failed bool
		says   []string // in the output
		flaky  []string // in the file, and as the last lines of the output
		silent string   // not in the output
		first  string   // the package that begins
	}{
		"all green": {
			args:   "./green",
			says:   []string{"SKIP: green TestSkips", "needs a machine we do not have", "DONE 2 tests, 1 skipped", "Slowest packages:", "tiny/green", "2 tests in 1 packages, 1 skipped"},
			silent: "Again:",
		},
		"failed once": {
			args:  "./green ./flaky ./main -- -shuffle=on",
			says:  []string{"DONE 7 tests, 1 skipped, 4 failures", "the first time", "Again: tiny/flaky", "Again: tiny/main"},
			flaky: []string{"tiny/flaky TestOnce", "tiny/flaky TestSubtests/a_(b)_[c]|d/e", "tiny/main TestOnceBehindMain"},
		},
		"failed twice": {
			args:   "./broken ./flaky",
			failed: true,
			says:   []string{"FAILED tiny/broken TestAlwaysFails"},
			flaky:  []string{"tiny/flaky TestOnce", "tiny/flaky TestSubtests/a_(b)_[c]|d/e"},
			silent: "FAILED tiny/broken TestFine",
		},
		"panic":                       {args: "./panics ./flaky", failed: true, says: []string{"out of hand", "FAILED tiny/panics: stopped before its last test"}, silent: "Again:"},
		"timeout":                     {args: "./hangs -- -timeout=100ms", failed: true, says: []string{"FAILED tiny/hangs: stopped before its last test (panic, timeout or exit), in TestHangs\n"}, silent: "Again:"},
		"does not build":              {args: "./nobuild ./flaky", failed: true, says: []string{"undefined: missing", "FAILED tiny/nobuild: no test ran"}, silent: "Again:"},
		"data race":                   {args: "./race -- -race", failed: true, says: []string{"FAILED tiny/race: data race"}, silent: "Again:"},
		"TestMain failed":             {args: "./leaks", failed: true, says: []string{"FAILED tiny/leaks: failed outside of its tests"}, silent: "Again:"},
		"too many":                    {args: "./many", failed: true, says: []string{"11 tests failed, more than 10: none was run again"}, silent: "Again:"},
		"a subtest that is not there": {args: "./renamed", failed: true, says: []string{"Again:", "FAILED tiny/renamed TestOfNewNames/"}},
		"slow first":                  {args: "-first first.txt ./flaky ./green", first: "tiny/green", flaky: []string{"tiny/flaky TestOnce", "tiny/flaky TestSubtests/a_(b)_[c]|d/e"}},
		"no such package":             {args: "./nowhere", failed: true, says: []string{"nowhere"}, silent: "Again:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := slices.Concat([]string{"-out", dir, "-gotestsum", strings.TrimSpace(string(tool))}, strings.Fields(c.args))
			if !strings.Contains(c.args, " -- ") {
				args = append(args, "--", "-count=1")
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
			cmd.Dir = filepath.Join("testdata", "tiny")
			cmd.Env = append(os.Environ(), "TESTRUN_MAIN=yes", "TINY_DIR="+dir, "GOFLAGS=", "CGO_ENABLED=1") // -race needs cgo
			cmd.WaitDelay = time.Second
			out, err := cmd.CombinedOutput()
			exit := (*exec.ExitError)(nil)
			if errors.As(err, &exit) != c.failed {
				t.Errorf("err = %v, want a failure: %t", err, c.failed)
			}
			text := string(out)
			for _, say := range c.says {
				if !strings.Contains(text, say) {
					t.Errorf("the output does not say %q", say)
				}
			}
			if c.silent != "" && strings.Contains(text, c.silent) {
				t.Errorf("the output says %q", c.silent)
			}
			wantFile, wantEnd := string(lines(c.flaky)), ""
			for _, test := range c.flaky {
				wantEnd += "FLAKY " + test + "\n"
			}
			if !strings.HasSuffix(text, wantEnd) {
				t.Errorf("the output does not end with\n%s", wantEnd)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "flaky.txt")); err != nil || string(got) != wantFile {
				t.Errorf("flaky.txt = %q, %v; want %q", got, err, wantFile)
			}
			if events, err := os.ReadFile(filepath.Join(dir, "test.jsonl")); err != nil {
				t.Error(err)
			} else if line, _, _ := strings.Cut(string(events), "\n"); !strings.Contains(line, c.first) {
				t.Errorf("it begins with %s, want %s", line, c.first)
			}
			if t.Failed() {
				t.Logf("output:\n%s", text)
			}
		})
	}
}

// TestMakeTarget holds `make test` to this program and to the flags under which the suite must pass.
func TestMakeTarget(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "make", "-n", "test", "PKG=./internal/x ./internal/y")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "MAKEFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "go run ./internal/testrun -first internal/testrun/slow.txt ./internal/x ./internal/y -- -race "; !strings.Contains(string(out), want) {
		t.Errorf("make test does not call %q but:\n%s", want, out)
	}
	if !strings.Contains(string(out), " -shuffle=on ") {
		t.Errorf("make test does not shuffle:\n%s", out)
	}
}

// TestRacesInJSON: the flags of `make test` leave the race detector out of encoding/json, and a value that is changed while it is turned into JSON,
// or while JSON is turned into it, is found all the same.
func TestRacesInJSON(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "make", "-n", "test", "PKG=.")
	list.Dir = filepath.Join("..", "..")
	list.Env = append(os.Environ(), "MAKEFLAGS=")
	text, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, flags, _ := strings.Cut(string(text), " . -- ")
	flags, _, ok := strings.Cut(flags, " -vet=off")
	if !ok || !strings.Contains(flags, "encoding/json=-race=false") {
		t.Fatalf("make test has other flags: %s", text)
	}
	source, err := os.ReadFile(filepath.Join("testdata", "jsonrace.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"go.mod": []byte("module jsonrace\n\ngo 1.26\n"), "jsonrace_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "go test "+flags+" -vet=off -count=1 .")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("no race was found")
	}
	for _, part := range []string{"string", "number", "list"} {
		for _, name := range []string{part, "into_a_" + part} {
			if !strings.Contains(string(out), "--- FAIL: TestRaces/"+name+" ") {
				t.Errorf("the race of %s was not found", name)
			}
		}
	}
	if t.Failed() {
		t.Logf("%v\n%s", err, out)
	}
}

// TestSlowPackagesComeFirst: those of the file, in its order, then the others in theirs; what is not tested now is left out.
func TestSlowPackagesComeFirst(t *testing.T) {
	t.Parallel()
	got := order([]string{"a", "b", "c", "d"}, []string{"c", "x", "b"})
	if want := []string{"c", "b", "a", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	data, err := os.ReadFile("slow.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(data)) { // one that was renamed would be forgotten, and run last again
		if _, err := os.Stat(filepath.Join("..", "..", strings.TrimPrefix(pkg, "chorus/"))); err != nil {
			t.Error(err)
		}
	}
}
