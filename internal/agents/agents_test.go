package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/datadir"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a small store that keeps agents as JSON, as a real one does. step is
// called before each change and may fail, or panic like a crash.
type memory struct {
	mu   sync.Mutex
	rows map[string][]byte
	puts int
	step func(what string) error
}

var _ Rows = (*memory)(nil)

func (m *memory) change(what string) error {
	if m.step != nil {
		return m.step(what)
	}
	return nil
}

func (m *memory) PutAgent(_ context.Context, a Agent) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.change("put"); err != nil {
		return err
	}
	data, err := json.Marshal(a)
	m.rows[a.Name] = data
	m.puts++
	return err
}

func (m *memory) Agent(_ context.Context, name string) (Agent, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.rows[name]
	if !ok {
		return Agent{}, false, nil
	}
	var a Agent
	err := json.Unmarshal(data, &a)
	return a, true, err
}

func (m *memory) Agents(ctx context.Context) ([]Agent, error) {
	var list []Agent
	for _, name := range slices.Sorted(maps.Keys(m.rows)) {
		a, _, err := m.Agent(ctx, name)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

func (m *memory) DeleteAgent(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.change("delete"); err != nil {
		return err
	}
	delete(m.rows, name)
	return nil
}

type fixture struct {
	*Store
	rows     *memory
	warnings []string
	now      time.Time
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func setup(t *testing.T) *fixture {
	t.Helper()
	h, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{rows: &memory{rows: map[string][]byte{}}, now: noon}
	f.Store = New(Config{
		Home: h, Rows: f.rows,
		Model: func(name string) error {
			if name != "demo/echo" && name != "demo/guide" {
				return fmt.Errorf("unknown model %q; did you mean demo/echo?", name)
			}
			return nil
		},
		Profile: func(name string) error {
			if name != "standard" && name != "locked" {
				return fmt.Errorf("unknown profile %q", name)
			}
			return nil
		},
		Warn:    func(w string) { f.warnings = append(f.warnings, w) },
		GitInit: func(context.Context, string) error { return nil },
		Now:     func() time.Time { return f.now },
	})
	return f
}

func (f *fixture) create(t *testing.T, name string) Agent {
	t.Helper()
	a, err := f.Create(t.Context(), Agent{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (f *fixture) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(f.file(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// crash runs something that panics in one of the injected steps.
func crash(t *testing.T, do func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("it did not crash")
		}
	}()
	do()
}

// agree checks that every folder has its row, and every row says what its file says.
func (f *fixture) agree(t *testing.T, names ...string) {
	t.Helper()
	list, err := f.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range list {
		got = append(got, a.Name)
		row, ok, err := f.rows.Agent(t.Context(), a.Name)
		if err != nil || !ok || !same(row, a) {
			t.Errorf("the row of %s: %+v (%v, %v), listed %+v", a.Name, row, ok, err, a)
		}
		data, err := os.ReadFile(f.file(a.Name))
		if err != nil {
			t.Fatal(err)
		}
		if file, err := parse(a.Name, data); err != nil || !same(file, a) {
			t.Errorf("the file of %s: %+v (%v)", a.Name, file, err)
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("agents %v, want %v", got, names)
	}
	if len(f.rows.rows) != len(names) {
		t.Errorf("rows %v, want %v", slices.Sorted(maps.Keys(f.rows.rows)), names)
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a := f.create(t, "helper")
	if a.Name != "helper" || a.Permissions != "standard" || a.Model != "" || !a.CreatedAt.Equal(noon) || !strings.Contains(a.SystemPrompt, "You are helper,") {
		t.Errorf("agent %+v", a)
	}
	dir := f.Home.AgentDir("helper")
	for _, name := range []string{"docs", "sessions", "processes", "workspace"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v (%v)", name, info, err)
		}
	}
	if docs, err := os.ReadFile(filepath.Join(dir, "docs", "README.md")); err != nil || !strings.HasPrefix(string(docs), "# What helper knows") {
		t.Errorf("docs %q (%v)", docs, err)
	}
	if f.Workspace("helper") != filepath.Join(dir, "workspace") {
		t.Errorf("workspace %s", f.Workspace("helper"))
	}
	if _, err := f.Create(t.Context(), Agent{Name: "helper"}); !errors.Is(err, ErrExists) {
		t.Errorf("twice: %v", err)
	}
	full, err := f.Create(t.Context(), Agent{Name: "second", SystemPrompt: "be brief", Model: "demo/echo", Permissions: "locked", Tools: []string{"read"}, WebSearch: true,
		Extra: map[string]json.RawMessage{"colour": json.RawMessage(`"blue"`)}})
	if err != nil || full.SystemPrompt != "be brief" || full.Model != "demo/echo" || full.Permissions != "locked" || !full.WebSearch || len(full.Tools) != 1 {
		t.Errorf("agent %+v (%v)", full, err)
	}
	f.agree(t, "helper", "second")
}

func TestNames(t *testing.T) {
	t.Parallel()
	f := setup(t)
	good := []string{"ab", strings.Repeat("a", 32)}
	for _, name := range good {
		f.create(t, name)
	}
	ctx := t.Context()
	for _, name := range []string{"", "a", "a_b", "-a", "a-", "A1", strings.Repeat("a", 33), "../x", "a/b", "a b"} {
		_, create := f.Create(ctx, Agent{Name: name})
		_, get := f.Get(ctx, name)
		_, configure := f.Configure(ctx, name, "model", "demo/echo")
		for _, err := range []error{create, get, configure, f.Destroy(ctx, name, false)} {
			if !errors.Is(err, ErrName) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	f.agree(t, slices.Sorted(slices.Values(good))...)
}

func TestGitWorkspace(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	f := setup(t)
	f.GitInit = gitInit
	f.create(t, "helper")
	out, err := exec.Command("git", "-C", f.Workspace("helper"), "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := filepath.EvalSymlinks(f.Workspace("helper"))
	if err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("top level %s, want %s (%v)", out, want, err)
	}
	if len(f.warnings) != 0 {
		t.Errorf("warnings %q", f.warnings)
	}
}

func TestWithoutGit(t *testing.T) {
	f := setup(t)
	f.GitInit = gitInit
	t.Setenv("PATH", t.TempDir())
	f.create(t, "helper")
	if len(f.warnings) != 1 || !strings.Contains(f.warnings[0], "install git") {
		t.Errorf("warnings %q", f.warnings)
	}
	f.agree(t, "helper")
}

func TestTemplateOfTheHome(t *testing.T) {
	t.Parallel()
	f := setup(t)
	put := func(name, text string, mode os.FileMode) {
		path := filepath.Join(f.Home.Template(), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	put("agent.json", `{"system_prompt":"I am {{name}}","model":"demo/guide","permissions":"locked","colour":"red"}`, 0o600)
	put("workspace/run.sh", "#!/bin/sh\n", 0o700)
	put("docs/style.md", "for {{name}}", 0o600)
	a := f.create(t, "helper")
	if a.SystemPrompt != "I am helper" || a.Model != "demo/guide" || a.Permissions != "locked" || string(a.Extra["colour"]) != `"red"` {
		t.Errorf("agent %+v", a)
	}
	dir := f.Home.AgentDir("helper")
	if info, err := os.Stat(filepath.Join(dir, "workspace", "run.sh")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("run.sh %v (%v)", info, err)
	}
	for name, want := range map[string]string{"docs/style.md": "for helper", "docs/README.md": "# What helper knows"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%s: %q (%v)", name, text, err)
		}
	}
	put("agent.json", "{\n  \"model\": oops\n}", 0o600)
	_, err := f.Create(t.Context(), Agent{Name: "broken"})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(f.Home.Template(), "agent.json")+":2:12") {
		t.Errorf("a broken template: %v", err)
	}
	put("agent.json", `{"permissions":"none-such"}`, 0o600)
	if _, err := f.Create(t.Context(), Agent{Name: "broken"}); err == nil || !strings.Contains(err.Error(), "none-such") {
		t.Errorf("a wrong profile in the template: %v", err)
	}
	put("agent.json", `{}`, 0o600)
	if err := os.Symlink("/etc/passwd", filepath.Join(f.Home.Template(), "docs", "link.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(t.Context(), Agent{Name: "linked"}); err == nil || !strings.Contains(err.Error(), "docs/link.md") {
		t.Errorf("a link in the template: %v", err)
	}
	f.agree(t, "helper")
}

func TestCreateIsAllOrNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is full")
	tests := map[string]func(f *fixture, ctx context.Context) (context.Context, Agent){
		"a wrong model":   func(f *fixture, ctx context.Context) (context.Context, Agent) { return ctx, Agent{Model: "gpt-9"} },
		"a wrong profile": func(f *fixture, ctx context.Context) (context.Context, Agent) { return ctx, Agent{Permissions: "x"} },
		"a store that fails": func(f *fixture, ctx context.Context) (context.Context, Agent) {
			f.rows.step = func(string) error { return broken }
			return ctx, Agent{}
		},
		"given up in between": func(f *fixture, ctx context.Context) (context.Context, Agent) {
			ctx, cancel := context.WithCancel(ctx)
			f.GitInit = func(context.Context, string) error { cancel(); return context.Canceled }
			return ctx, Agent{}
		},
		"a file in the way": func(f *fixture, ctx context.Context) (context.Context, Agent) {
			if err := os.WriteFile(f.Home.AgentDir("helper"), nil, 0o600); err != nil {
				panic(err)
			}
			return ctx, Agent{}
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			if _, err := f.Home.Ensure(f.Home.Agents()); err != nil {
				t.Fatal(err)
			}
			ctx, given := prepare(f, t.Context())
			given.Name = "helper"
			if _, err := f.Create(ctx, given); err == nil {
				t.Fatal("it was made")
			}
			f.rows.step = nil
			f.agree(t)
			if left, _ := filepath.Glob(filepath.Join(f.Home.Agents(), ".*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	f := setup(t)
	if err := os.WriteFile(f.Home.Agents(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(t.Context(), Agent{Name: "helper"}); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("agents/ is a file: %v", err)
	}
}

func TestCrashWhileCreating(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	f.GitInit = func(context.Context, string) error { panic("killed while it was built") }
	crash(t, func() { _, _ = f.Create(ctx, Agent{Name: "early"}) })
	f.agree(t)
	f.GitInit = func(context.Context, string) error { return nil }
	f.rows.step = func(string) error { panic("killed before its row") }
	crash(t, func() { _, _ = f.Create(ctx, Agent{Name: "late"}) })
	f.rows.step = nil
	f.agree(t, "late")
	f.create(t, "early")
	f.agree(t, "early", "late")
	if left, _ := filepath.Glob(filepath.Join(f.Home.Agents(), ".new-early-*")); len(left) != 1 {
		t.Errorf("left behind: %v; a folder this young may be another process's work", left)
	}
	f.now = time.Now().Add(2 * leftover)
	f.create(t, "third")
	if left, _ := filepath.Glob(filepath.Join(f.Home.Agents(), ".new-*")); len(left) != 0 {
		t.Errorf("never swept: %v", left)
	}
}
