package selfedit

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/tool"
	"chorus/internal/tool/tooltest"
)

// agentT is an agent in memory.
type agentT struct {
	mu                         sync.Mutex
	prompt, permissions, model string
	docs                       map[string]string
}

var _ Self = (*agentT)(nil)

func (a *agentT) set(do func()) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
	return "done", nil
}

func (a *agentT) Prompt(context.Context) (string, error) { return a.prompt, nil }
func (a *agentT) SetPrompt(_ context.Context, p string) (string, error) {
	return a.set(func() { a.prompt = p })
}
func (a *agentT) Doc(_ context.Context, path string) (string, error) { return a.docs[path], nil }
func (a *agentT) SetDoc(_ context.Context, path, text string) (string, error) {
	return a.set(func() { a.docs[path] = text })
}
func (a *agentT) SetPermissions(_ context.Context, p string) (string, error) {
	if p == "nonsense" {
		return "", tool.Mistake("there is no such profile")
	}
	return a.set(func() { a.permissions = p })
}
func (a *agentT) SetModel(_ context.Context, m string) (string, error) {
	if m == "broken" {
		return "", errors.New("the disk is full")
	}
	return a.set(func() { a.model = m })
}

func fresh() *agentT { return &agentT{prompt: "old\nprompt", docs: map[string]string{"a.md": "old"}} }

func setOf(t testing.TB, a *agentT) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(Tools(a)...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestSuite(t *testing.T) {
	t.Parallel()
	tooltest.Run(t, tooltest.Fixture{
		New: func(t *testing.T) (*tool.Set, []string) { return setOf(t, fresh()), nil },
		Calls: map[string][]string{
			"self_edit_system_prompt": {`{"new_prompt":"be brief"}`, `{"new_prompt":" "}`},
			"self_edit_docs":          {`{"path":"a.md","content":"x"}`, `{"path":"../agent.json","content":"x"}`},
			"self_edit_permissions":   {`{"profile":"locked"}`, `{"profile":"nonsense"}`},
			"self_edit_model":         {`{"model":"demo/echo"}`, `{"model":"broken"}`},
		},
	})
}

func TestActionsAndEffects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, args, action, wrong string
		holds                     func(*agentT) bool
	}{
		{"self_edit_system_prompt", `{"new_prompt":" be brief\n"}`, "tool:self_edit:system_prompt", "", func(a *agentT) bool { return a.prompt == "be brief" }},
		{"self_edit_system_prompt", `{"new_prompt":"\n "}`, "tool:self_edit:system_prompt", "cannot be empty", nil},
		{"self_edit_system_prompt", `{"new_prompt":"` + strings.Repeat("x", maxText) + `"}`, "tool:self_edit:system_prompt", "", func(a *agentT) bool { return len(a.prompt) == maxText }},
		{"self_edit_system_prompt", `{"new_prompt":"` + strings.Repeat("x", maxText+1) + `"}`, "tool:self_edit:system_prompt", "Make it shorter", nil},
		{"self_edit_docs", `{"path":"a.md","content":"` + strings.Repeat("x", maxText) + `"}`, "tool:self_edit:docs a.md", "", func(a *agentT) bool { return len(a.docs["a.md"]) == maxText }},
		{"self_edit_docs", `{"path":"@docs/sub/b.md","content":"x"}`, "tool:self_edit:docs sub/b.md", "", func(a *agentT) bool { return a.docs["sub/b.md"] == "x" }},
		{"self_edit_docs", `{"path":"../../agent.json","content":"x"}`, "tool:self_edit:docs ../../agent.json", "is outside your docs", nil},
		{"self_edit_docs", `{"path":"sub/../../x.md","content":"x"}`, "tool:self_edit:docs ../x.md", "is outside your docs", nil},
		{"self_edit_docs", `{"path":"/etc/x.md","content":"x"}`, "tool:self_edit:docs /etc/x.md", "is outside your docs", nil},
		{"self_edit_docs", `{"path":"","content":"x"}`, "tool:self_edit:docs .", "is outside your docs", nil},
		{"self_edit_docs", `{"path":"run.sh","content":"x"}`, "tool:self_edit:docs run.sh", ".md files", nil},
		{"self_edit_docs", `{"path":"a.md","content":"` + strings.Repeat("x", maxText+1) + `"}`, "tool:self_edit:docs a.md", "Make it shorter", nil},
		{"self_edit_permissions", `{"profile":" locked "}`, "tool:self_edit:permissions locked", "", func(a *agentT) bool { return a.permissions == "locked" }},
		{"self_edit_permissions", `{"profile":"nonsense"}`, "tool:self_edit:permissions nonsense", "no such profile", nil},
		{"self_edit_model", `{"model":"opus"}`, "tool:self_edit:model opus", "", func(a *agentT) bool { return a.model == "opus" }},
		{"self_edit_model", `{"model":"broken"}`, "tool:self_edit:model broken", "disk is full", nil},
	} {
		a := fresh()
		made, args, err := setOf(t, a).Resolve(c.name, []byte(c.args))
		if err != nil {
			t.Fatal(err)
		}
		if touched := made.Access(args); len(touched) != 1 || touched[0].Action() != c.action {
			t.Errorf("%s %.60s touches %v", c.name, c.args, touched)
		}
		res, err := made.Run(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		if res.Failed != (c.wrong != "") || !strings.Contains(res.Blocks.Text(), c.wrong) {
			t.Errorf("%s %.60s: %q", c.name, c.args, res.Blocks.Text())
		}
		if c.holds != nil && !c.holds(a) {
			t.Errorf("%s %s: %+v", c.name, c.args, a)
		}
		if c.holds == nil && (a.prompt != "old\nprompt" || len(a.docs) != 1 || a.docs["a.md"] != "old" || a.permissions+a.model != "") {
			t.Errorf("%s %.60s changed %+v", c.name, c.args, a)
		}
	}
}

func TestPreviewShowsWhatWouldChange(t *testing.T) {
	t.Parallel()
	set := setOf(t, fresh())
	for args, want := range map[string]string{
		`{"path":"a.md","content":"new"}`:  "-old\n+new\n",
		`{"path":"b.md","content":"new"}`:  "+new\n",
		`{"path":"a.md","content":"old"}`:  "",
		`{"path":"../a.md","content":"x"}`: "",
	} {
		made, plain, err := set.Resolve("self_edit_docs", []byte(args))
		if err != nil {
			t.Fatal(err)
		}
		if got := made.(tool.Previewer).Preview(t.Context(), plain); got != want {
			t.Errorf("%s shows %q", args, got)
		}
	}
}

// No path that is written is any but the one that was judged, and none leads out.
func TestDocsStayInside(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOf(rapid.RuneFrom([]rune("ab./\\@ \x00"))).Draw(t, "path") + rapid.SampledFrom([]string{"", ".md"}).Draw(t, "end")
		a := fresh()
		args, _ := json.Marshal(docsInput{Path: name, Content: "new"})
		made := Tools(a)[1]
		if _, err := made.Run(t.Context(), args); err != nil {
			t.Fatal(err)
		}
		for path, text := range a.docs {
			if text != "new" {
				continue
			}
			if made.Access(args)[0].Detail != "docs "+path || strings.Contains("/"+path+"/", "/../") || strings.HasPrefix(path, "/") {
				t.Fatalf("%q wrote %q, judged as %v", name, path, made.Access(args))
			}
		}
	})
}
