package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

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

// Of two people who edit the same version one is told that the other was quicker, and nothing of the other's is lost.
func TestEditHoldsTheVersion(t *testing.T) {
	t.Parallel()
	f := setup(t)
	seen := f.Version(f.create(t, "helper"))
	first, err := f.Edit(t.Context(), "helper", seen, map[string]string{"systemPrompt": "first", "tools": "read,bash"})
	if err != nil || first.SystemPrompt != "first" || f.Version(first) == seen {
		t.Fatalf("%+v, %v", first, err)
	}
	if _, err := f.Edit(t.Context(), "helper", seen, map[string]string{"systemPrompt": "second"}); !errors.Is(err, ErrMoved) {
		t.Errorf("a stale edit: %v", err)
	}
	if now, err := f.Get(t.Context(), "helper"); err != nil || now.SystemPrompt != "first" || f.Version(now) != f.Version(first) {
		t.Errorf("%+v, %v", now, err)
	}
	if _, err := f.Edit(t.Context(), "helper", f.Version(first), map[string]string{"systemPrompt": "second", "model": "demo/ehco"}); err == nil {
		t.Error("a model that is none was taken")
	}
	if now, _ := f.Get(t.Context(), "helper"); now.SystemPrompt != "first" {
		t.Errorf("half of an edit was saved: %+v", now)
	}
	if got, err := f.Edit(t.Context(), "helper", "", map[string]string{"systemPrompt": "third"}); err != nil || got.SystemPrompt != "third" {
		t.Errorf("without a version: %+v, %v", got, err)
	}
	f.agree(t, "helper")
	var wins, moved int
	var mu sync.Mutex
	now, err := f.Get(t.Context(), "helper")
	if err != nil {
		t.Fatal(err)
	}
	seen = f.Version(now)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, err := f.Edit(t.Context(), "helper", seen, map[string]string{"systemPrompt": fmt.Sprint("by ", i)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				wins++
			case errors.Is(err, ErrMoved):
				moved++
			}
		})
	}
	all.Wait()
	if wins != 1 || moved != 7 {
		t.Errorf("%d saved and %d were told", wins, moved)
	}
}
