package roster

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

	"chorus/internal/home"

	"pgregory.net/rapid"
)

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
	*Roster
	rows     *memory
	warnings []string
	now      time.Time
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func setup(t *testing.T) *fixture {
	t.Helper()
	h, err := home.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{rows: &memory{rows: map[string][]byte{}}, now: noon}
	f.Roster = New(Config{
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

func TestConfigure(t *testing.T) {
	t.Parallel()
	tests := []struct {
		key, value string
		want       func(Agent) bool
		wrong      string
	}{
		{"systemPrompt", "be <kind> & brief", func(a Agent) bool { return a.SystemPrompt == "be <kind> & brief" }, ""},
		{"system_prompt", "old spelling", func(a Agent) bool { return a.SystemPrompt == "old spelling" }, ""},
		{"model", " demo/echo ", func(a Agent) bool { return a.Model == "demo/echo" }, ""},
		{"model", "", func(a Agent) bool { return a.Model == "" }, ""},
		{"model", "demo/ehco", nil, "did you mean demo/echo?"},
		{"permissions", "locked", func(a Agent) bool { return a.Permissions == "locked" }, ""},
		{"permissions", "lokced", nil, `unknown profile "lokced"`},
		{"permissions", "", nil, "name a profile"},
		{"tools", "read, bash,", func(a Agent) bool { return slices.Equal(a.Tools, []string{"read", "bash"}) }, ""},
		{"tools", "", func(a Agent) bool { return a.Tools == nil }, ""},
		{"webSearch", "yes", func(a Agent) bool { return a.WebSearch }, ""},
		{"web_search", "OFF", func(a Agent) bool { return !a.WebSearch }, ""},
		{"webSearch", "perhaps", nil, "neither true nor false"},
		{"name", "other", nil, "cannot be changed"},
		{"created_at", "now", nil, "cannot be changed"},
		{"modle", "x", nil, `did you mean "model"?`},
		{"PERMISSION", "x", nil, `did you mean "permissions"?`},
		{"colour", "x", nil, "there are: systemPrompt, model"},
	}
	for _, tt := range tests {
		f := setup(t)
		before := f.create(t, "helper")
		got, err := f.Configure(t.Context(), "helper", tt.key, tt.value)
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s=%q: %v", tt.key, tt.value, err)
			}
			if now, err := f.Get(t.Context(), "helper"); err != nil || !same(now, before) {
				t.Errorf("%s=%q changed it: %+v (%v)", tt.key, tt.value, now, err)
			}
		} else if err != nil || !tt.want(got) {
			t.Errorf("%s=%q: %+v (%v)", tt.key, tt.value, got, err)
		}
		f.agree(t, "helper")
	}
	if _, err := setup(t).Configure(t.Context(), "nobody", "model", "demo/echo"); !errors.Is(err, ErrUnknown) {
		t.Errorf("nobody: %v", err)
	}
}

func TestCrashWhileConfiguring(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]func(string) error{
		"a crash": func(string) error { panic("killed between file and row") },
		"a fault": func(string) error { return errors.New("database is locked") },
	} {
		f := setup(t)
		f.create(t, "helper")
		f.rows.step = step
		do := func() {
			if _, err := f.Configure(t.Context(), "helper", "model", "demo/echo"); err == nil || !strings.Contains(err.Error(), "taken over at the next look") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if name == "a crash" {
			crash(t, do)
		} else {
			do()
		}
		f.rows.step = nil
		if a, err := f.Get(t.Context(), "helper"); err != nil || a.Model != "demo/echo" {
			t.Errorf("%s: %+v (%v)", name, a, err)
		}
		f.agree(t, "helper")
	}
}

func TestHandEdits(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create(t, "helper")
	f.write(t, "helper", "\ufeff{\n  \"system_prompt\": \"by hand\",\n  \"modle\": \"typo\",\n  \"deep\": { \"a\": [1, 2.50, \"<&>\"] }\n}\n")
	a, err := f.Get(t.Context(), "helper")
	if err != nil || a.SystemPrompt != "by hand" || a.Name != "helper" || a.Permissions != "standard" {
		t.Errorf("%+v (%v)", a, err)
	}
	if len(f.warnings) != 1 || !strings.Contains(f.warnings[0], `did you mean "model"?`) {
		t.Errorf("warnings %q", f.warnings)
	}
	puts := f.rows.puts
	for range 3 {
		if _, err := f.Get(t.Context(), "helper"); err != nil {
			t.Fatal(err)
		}
	}
	if f.rows.puts != puts {
		t.Error("what is equal was written again")
	}
	if _, err := f.Configure(t.Context(), "helper", "tools", "read"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.file("helper"))
	if err != nil {
		t.Fatal(err)
	}
	var kept map[string]json.RawMessage
	if err := json.Unmarshal(data, &kept); err != nil || string(kept["modle"]) != `"typo"` || !strings.Contains(string(kept["deep"]), "2.50") || !strings.Contains(string(kept["deep"]), "<&>") {
		t.Errorf("unknown keys: %s (%v)", data, err)
	}
	f.agree(t, "helper")
}

func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, wrong string }{
		{"a missing comma", "{\n  \"model\": \"demo/echo\"\n  \"tools\": []\n}", "agent.json:3:3"},
		{"empty", "", "agent.json:1:1"},
		{"torn", "{\n  \"mod", "agent.json:2:"},
		{"a list", "[]", "one JSON object"},
		{"null", "null", "one JSON object"},
		{"a wrong kind", "{\n  \"tools\": \"read\"\n}", `agent.json:2:3: "tools" must be a list of names, not a string`},
		{"a number for a name", `{"name": 7}`, `"name" must be text`},
		{"no time", `{"createdAt": "yesterday"}`, `"createdAt"`},
		{"a wrong model", `{"model": "gpt-9"}`, "unknown model"},
		{"a wrong profile", `{"permissions": "all"}`, "unknown profile"},
		{"another's name", `{"name": "other"}`, `write "helper" as its name`},
	}
	for _, tt := range tests {
		f := setup(t)
		good := f.create(t, "helper")
		f.write(t, "helper", tt.text)
		a, err := f.Get(t.Context(), "helper")
		var broken *FileError
		if !errors.As(err, &broken) || !strings.Contains(err.Error(), tt.wrong) || !strings.Contains(err.Error(), "last good version") {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !same(a, good) {
			t.Errorf("%s: the last good version is gone: %+v", tt.name, a)
		}
		list, err := f.List(t.Context())
		if err != nil || len(list) != 1 || !same(list[0], good) || len(f.warnings) != 1 {
			t.Errorf("%s: listed %+v (%v), warnings %q", tt.name, list, err, f.warnings)
		}
		if _, err := f.Configure(t.Context(), "helper", "model", "demo/echo"); !errors.As(err, &broken) {
			t.Errorf("%s: configured: %v", tt.name, err)
		}
		if data, err := os.ReadFile(f.file("helper")); err != nil || string(data) != tt.text {
			t.Errorf("%s: the person's text is gone: %q (%v)", tt.name, data, err)
		}
		if err := f.Destroy(t.Context(), "helper", false); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		f.agree(t)
	}
}

func TestLostFilesAndFolders(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create(t, "file")
	f.create(t, "folder")
	if err := errors.Join(os.Remove(f.file("file")), os.RemoveAll(f.Home.AgentDir("folder"))); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(f.Home.Agents(), "stray", "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.agree(t, "file") // its file is written again, the other is forgotten
	if _, err := f.Get(t.Context(), "stray"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a folder without a file: %v", err)
	}
	if _, err := f.Create(t.Context(), Agent{Name: "stray"}); err == nil || errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("made over a stray folder: %v", err)
	}
}

func TestDestroy(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	for range 2 {
		f.create(t, "helper")
		if err := f.Destroy(ctx, "helper", true); err != nil {
			t.Fatal(err)
		}
		f.agree(t)
	}
	for _, name := range []string{"helper", "helper.2"} {
		if _, err := os.Stat(filepath.Join(f.Home.Trash(), name, "agent.json")); err != nil {
			t.Error(err)
		}
	}
	f.create(t, "helper")
	if err := f.Destroy(ctx, "helper", false); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(f.Home.Agents()); err != nil || len(entries) != 0 {
		t.Errorf("left: %v (%v)", entries, err)
	}
	if err := f.Destroy(ctx, "helper", false); !errors.Is(err, ErrUnknown) {
		t.Errorf("twice: %v", err)
	}
}

func TestCrashWhileDestroying(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		f := setup(t)
		f.create(t, "helper")
		f.rows.step = func(string) error { return errors.New("database is locked") }
		if err := f.Destroy(t.Context(), "helper", keep); err == nil {
			t.Error("destroyed without the store")
		}
		f.rows.step = nil
		f.agree(t, "helper") // a fault leaves it whole
		f.rows.step = func(string) error { panic("killed between folder and row") }
		crash(t, func() { _ = f.Destroy(t.Context(), "helper", keep) })
		f.rows.step = nil
		f.agree(t) // a crash ends what was begun
		f.create(t, "helper")
		f.agree(t, "helper")
	}
}

func TestStoreFaultsAreSaid(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create(t, "helper")
	f.write(t, "helper", `{"model":"demo/echo"}`)
	fault := errors.New("database is locked")
	f.rows.step = func(string) error { return fault }
	if _, err := f.Get(t.Context(), "helper"); !errors.Is(err, fault) {
		t.Errorf("get: %v", err)
	}
	if _, err := f.List(t.Context()); !errors.Is(err, fault) {
		t.Errorf("list: %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create(t, "helper")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := f.Configure(t.Context(), "helper", "systemPrompt", fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
			if _, err := f.List(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.agree(t, "helper")
}

func TestAgentRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := Agent{
			Name: rapid.StringMatching(`[a-z]{2,8}`).Draw(t, "name"), SystemPrompt: rapid.String().Draw(t, "prompt"),
			Model: rapid.String().Draw(t, "model"), Permissions: rapid.String().Draw(t, "permissions"),
			Tools: rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "tools"), WebSearch: rapid.Bool().Draw(t, "web"),
			CreatedAt: time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "at"), 0).UTC(),
			Extra:     map[string]json.RawMessage{"x-" + rapid.String().Draw(t, "key"): json.RawMessage(`{"a":[1.0,"<"]}`)},
		}
		data, err := document(a)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parse("agent.json", data)
		if err != nil || !same(back, a) {
			t.Fatalf("%s became %+v (%v)", data, back, err)
		}
	})
}

func FuzzAgentFile(f *testing.F) {
	for _, seed := range []string{`{}`, `{"name":"ab","tools":["x"],"colour":{"a":1}}`, "{\n\"model\":7}", `{"system_prompt":"x","systemPrompt":"y"}`, "[", "\ufeffnull"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parse("agent.json", data)
		if err != nil {
			var broken *FileError
			if !errors.As(err, &broken) || broken.Line < 0 || broken.Column < 0 {
				t.Fatal(err)
			}
			return
		}
		again, err := document(a)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parse("agent.json", again); err != nil || !same(a, back) {
			t.Fatalf("%q became %q (%v)", data, again, err)
		}
	})
}
