package tooltest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/polltest"
	"chorus/internal/sandbox/host"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
	"chorus/internal/tool/git"
	"chorus/internal/tool/notes"
	"chorus/internal/tool/remember"
	"chorus/internal/tool/search"
	"chorus/internal/tool/shell"
	"chorus/internal/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// builtin wires the coding set as an application does.
func builtin(tb testing.TB, work, home string) *tool.Set {
	tb.Helper()
	roots, err := files.NewRoots(work, files.Root{Name: "outputs", Dir: filepath.Join(home, "outputs"), Writable: true},
		files.Root{Name: "memory/channel", Dir: filepath.Join(home, "web", "room"), Writable: true, Only: []string{"MEMORY.md"}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = roots.Close() })
	run := host.New(os.Environ())
	tools := files.Tools(roots)
	tools = append(tools, git.Tools(run, roots, roots.Keep)...)
	tools = append(tools,
		search.New(roots, search.Options{}),
		shell.New(run, shell.Options{Dir: work, Env: roots.Env(), Keep: roots.Keep}),
		notes.New(notes.NewFile(filepath.Join(home, "notes.json"))),
		remember.New(roots),
		remember.Recall(func(context.Context, string, int) ([]remember.Hit, error) { return nil, nil }),
	)
	set, err := tool.NewSet(tools...)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func TestBuiltIn(t *testing.T) {
	t.Parallel()
	tooltest.Run(t, tooltest.Fixture{
		New: func(t *testing.T) (*tool.Set, []string) {
			work, home := t.TempDir(), t.TempDir()
			for name, content := range map[string]string{
				"a.go": "package a\n\nfunc A() {}\n", "sub/b.txt": "one\ntwo\n", "pic.png": "\x89PNG\r\n\x1a\n\x00", "bin": "\x00", ".gitignore": "*.log\n", "x.log": "x",
			} {
				full := filepath.Join(work, name)
				if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if git, err := exec.LookPath("git"); err == nil {
				if out, err := exec.Command(git, "-C", work, "init", "-q").CombinedOutput(); err != nil {
					t.Fatalf("%v %s", err, out)
				}
			}
			return builtin(t, work, home), []string{work, home}
		},
		Calls: map[string][]string{
			"read":          {`{"path":"a.go"}`, `{"path":"sub"}`, `{"path":"pic.png"}`, `{"path":"bin"}`, `{"path":"none"}`},
			"write":         {`{"path":"new/x","content":"x"}`, `{"path":"a.go","content":""}`, `{"path":"../x","content":""}`},
			"edit":          {`{"path":"a.go","old_string":"A","new_string":"B"}`, `{"path":"none","old_string":"A","new_string":"B"}`},
			"hashline_edit": {`{"path":"a.go","edits":[{"op":"append","lines":["// end"]}]}`, `{"path":"a.go","edits":[{"op":"replace","pos":"1#ZZ"}]}`, `{"path":"none","edits":[]}`},
			"apply_patch":   {`{"patch":"*** Begin Patch\n*** Add File: n\n+x\n*** End Patch"}`, `{"patch":"--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-package a\n+package b\n"}`},
			"list_files":    {`{}`, `{"glob":"*.go","path":"sub"}`},
			"search_files":  {`{"query":"func"}`, `{"query":"("}`},
			"bash":          {`{"command":"echo hi > made; seq 3000"}`, `{"command":"exit 3"}`},
			"git_status":    {`{}`},
			"git_diff":      {`{}`, `{"staged":true,"path":"a.go"}`},
			"git_commit":    {`{"message":"x"}`, `{"message":"x","paths":["sub"]}`},
			"git_push":      {`{}`},
			"remember":      {`{"text":"tea at five"}`, `{"text":"x","scope":"global"}`},
			"recall":        {`{"query":"tea"}`},
			"work_notes":    {`{"action":"set","key":"a","value":"b"}`, `{"action":"list"}`},
		},
	})
}

// TestOtherDesignsNames: every name of the designs that Chorus unites answers.
func TestOtherDesignsNames(t *testing.T) {
	t.Parallel()
	aliases := builtin(t, t.TempDir(), t.TempDir()).Aliases()
	for name, want := range map[string]string{
		"create_file": "write", "write_file": "write", "append_file": "write", "WriteFile": "write",
		"str_replace": "edit", "FileEdit": "edit", "view": "read", "read_file": "read", "ReadFile": "read",
		"run_command": "bash", "RunCommand": "bash", "ListFiles": "list_files", "SearchText": "search_files",
		"GitStatus": "git_status", "GitDiff": "git_diff", "ApplyPatch": "apply_patch", "WorkNotes": "work_notes",
	} {
		if aliases[name] != want {
			t.Errorf("%s is %q, want %q", name, aliases[name], want)
		}
	}
}

// TestSmallPrefix: the tools stand at the beginning of every prompt, so their
// words are few: at about four bytes a token, no more than 1,600 tokens.
func TestSmallPrefix(t *testing.T) {
	t.Parallel()
	size := 0
	for _, spec := range builtin(t, t.TempDir(), t.TempDir()).Specs() {
		if !spec.Rare { // of those only the names are sent
			size += len(spec.Name) + len(spec.Description) + len(spec.Schema)
		}
	}
	if size > 6400 {
		t.Errorf("the tools take %d bytes of every prompt", size)
	}
	t.Logf("%d bytes", size)
}

// TestQuickToBuild: a set is made at every start.
func TestQuickToBuild(t *testing.T) {
	const limit = 10 * time.Millisecond * raceFactor // about 1 ms where nothing else runs and without the race detector, 8 with it
	work, home := t.TempDir(), t.TempDir()
	best := time.Hour
	if !polltest.Soon(func() bool { // the machine may be busy, which can only add: the quickest counts
		start := time.Now()
		builtin(t, work, home)
		best = min(best, time.Since(start))
		return best <= limit
	}) {
		t.Errorf("the set took %s", best)
	}
	t.Log(best)
}

func BenchmarkBuild(b *testing.B) {
	work, home := b.TempDir(), b.TempDir()
	for b.Loop() {
		builtin(b, work, home)
	}
}
