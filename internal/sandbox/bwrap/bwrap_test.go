//go:build linux

package bwrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/programtest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/sandbox/host"
	"chorus/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == bwrap.InitArg {
		bwrap.Init()
	}
	if len(os.Args) > 3 && os.Args[1] == serverArg {
		os.Exit(serve(os.Args[2], os.Args[3]))
	}
	goleak.VerifyTestMain(m)
}

// options for an executor whose process 1 is this very test: it is never older than the code.
func options(t testing.TB) bwrap.Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return bwrap.Options{Environ: os.Environ(), Init: self}
}

// with is an executor that works here, or the end of the test. A missing program
// is a failure where nothing may be skipped; a kernel that forbids namespaces is
// not, because nobody can install another one.
func with(t testing.TB, opts bwrap.Options) *bwrap.Executor {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil && os.Getenv("CI") == "true" {
		t.Fatal("bubblewrap is missing; with CI=true nothing is skipped that could be installed")
	}
	ex := bwrap.New(opts)
	t.Cleanup(ex.Close)
	if err := ex.Probe(t.Context()); err != nil {
		t.Skipf("!!! the sandbox is NOT TESTED here: %v", err)
	}
	return ex
}

func run(t testing.TB, ex sandbox.Executor, command sandbox.Command) sandbox.Result {
	t.Helper()
	if command.Dir == "" {
		command.Dir = t.TempDir()
	}
	res, err := ex.Run(t.Context(), command)
	if err != nil {
		t.Fatalf("run %q: %v", command.Shell, err)
	}
	return res
}

func TestContract(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"small program", "our own"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options(t)
			if name == "small program" {
				opts.Init = small(t)
			}
			sandboxtest.Run(t, sandboxtest.Fixture{OwnPids: true, New: func(t *testing.T, environ []string) sandbox.Executor {
				opts := opts
				opts.Environ = environ
				return with(t, opts)
			}})
		})
	}
}

// small builds process 1 as it is put into Chorus.
func small(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "init")
	cmd := exec.Command("go", "build", "-o", program, "chorus/internal/sandbox/bwrap/inside/program")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

func TestFacts(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	for _, fact := range ex.Facts() {
		t.Logf("%-18s %-5v %s", fact.Name, fact.Holds, fact.Words)
		if fact.Name == "" || fact.Words == "" {
			t.Errorf("a fact without words: %+v", fact)
		}
	}
	missing := bwrap.New(bwrap.Options{Program: "no-such-bwrap-here"})
	err := missing.Probe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "apt-get install bubblewrap") {
		t.Errorf("a missing program: %v", err)
	}
	if facts := missing.Facts(); len(facts) != 1 || facts[0].Holds {
		t.Errorf("a missing program: %+v", facts)
	}
}

// TestProbe: a bubblewrap that does not work is distinguished from a command that fails.
func TestProbe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ version, script, want string }{
		"forbidden": {"0.8.0", `echo "bwrap: No permissions to create new namespace" >&2; exit 1`, "namespaces"},
		"silent":    {"0.8.0", `exit 1`, "without a message"},
		"old":       {"0.3.1", `exit 0`, "0.5 or later"},
		"lying":     {"0.8.0", `exit 0`, "put up the sandbox"}, // it never ran anything
		"broken":    {"0.8.0", `exec sleep 0.1`, "put up the sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "bwrap")
			text := "#!/bin/sh\ncase $1 in --version) echo bubblewrap " + tt.version + "; exit;; --help) exit;; esac\n" + tt.script + "\n"
			programtest.Write(t, program, text)
			err := bwrap.New(bwrap.Options{Environ: os.Environ(), Program: program}).Probe(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// BenchmarkStart is what the sandbox costs: a command that does nothing, with and without.
func BenchmarkStart(b *testing.B) {
	opts := options(b)
	opts.Init = small(b)
	dir := b.TempDir()
	for _, bench := range []struct {
		name string
		ex   sandbox.Executor
	}{{"host", host.New(os.Environ())}, {"bwrap", with(b, opts)}} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := bench.ex.Run(b.Context(), sandbox.Command{Argv: []string{"/bin/true"}, Dir: dir, Merge: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
