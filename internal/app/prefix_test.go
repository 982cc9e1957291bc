package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/runsetup"
)

// prefixTokens is what may stand before a plain conversation, by the estimate of four characters a token. Every request pays
// for it; what is seldom needed belongs behind find_tools.
const prefixTokens = 2400

// heads are the beginnings of the requests of a conversation with these prompts, each said when the one before was answered, and
// all that was said and done in it.
func heads(t *testing.T, a *App, opts runsetup.SessionOptions, prompts ...string) (out []*model.Head, all string) {
	t.Helper()
	s, err := a.Sessions.OpenSession(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, prompt := range prompts {
		_, said := talk(t, s, prompt)
		all += said
	}
	for item, err := range s.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event == nil {
			continue
		}
		if began, ok := item.Event.Body.(chat.RunStarted); ok {
			data, err := a.DB.Blob(t.Context(), began.Head)
			if err != nil {
				t.Fatal(err)
			}
			head, err := model.ParseHead(data)
			if err != nil {
				t.Fatal(err)
			}
			if out = append(out, head); len(out) == len(prompts) {
				return out, all
			}
		}
	}
	t.Fatal("not every prompt began a run")
	return nil, ""
}

func tokensOf(h *model.Head) int {
	n := len(h.System)
	for _, s := range h.Tools {
		n += len(s.Name) + len(s.Description) + len(s.Schema)
	}
	return model.Tokens(n)
}

func toolNames(h *model.Head) (names []string) {
	for _, s := range h.Tools {
		names = append(names, s.Name)
	}
	return names
}

// A plain run carries few schemas; the rest can be called all the same, and what was sent first stays as it was.
func TestThePrefixIsShort(t *testing.T) {
	t.Parallel()
	a := hungHome(t, "", "")
	opts := runsetup.SessionOptions{Dir: t.TempDir(), Model: "demo/script", Profile: "open", Yes: true}
	all, said := heads(t, a, opts, "!say hello", `!call process_list {}`+"\n!---\n"+`!call use_tool {"name":"list_agents","arguments":{}}`+"\n!---\n!say {{last}}", "!say again")
	first := all[0]
	if n := tokensOf(first); n > prefixTokens {
		t.Errorf("%d tokens stand before a plain conversation, %d are the bar: %v", n, prefixTokens, toolNames(first))
	}
	if !strings.Contains(said, "Nothing was left running.") || !strings.Contains(said, "There are no agents") && !strings.Contains(said, "- chorus") {
		t.Errorf("a tool that is not listed was not called: %s", said)
	}
	names := toolNames(first)
	for _, name := range []string{"bash", "read", "edit", "write", "run_background", "remember", "recall", "find_tools", "use_tool"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not listed", name)
		}
	}
	find := first.Tools[slices.Index(names, "find_tools")].Description
	for _, name := range []string{"process_list", "process_kill", "add_process_hooks", "spawn_agent", "send_to_agent", "read_agent_docs"} {
		if slices.Contains(names, name) || !strings.Contains(find, name) {
			t.Errorf("%s is listed, or not named: %s", name, find)
		}
	}
	for _, later := range all[1:] {
		if a, b := mustBytes(t, first), mustBytes(t, later); a != b {
			t.Error("what stands before the conversation has changed")
		}
	}
}

func mustBytes(t *testing.T, h *model.Head) string {
	t.Helper()
	data, err := h.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// What an agent's configuration names is listed with its schema.
func TestNamedToolsAreListed(t *testing.T) {
	t.Parallel()
	a := hungHome(t, "", "")
	dir := a.Home.AgentDir("keeper")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.json"), []byte(`{"tools":["read","process_list","process_kill"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := runsetup.SessionOptions{Dir: t.TempDir(), Model: "demo/script", Profile: "open", Yes: true, Agent: "keeper"}
	all, _ := heads(t, a, opts, "!say hello")
	if names := toolNames(all[0]); !slices.Equal(names, []string{"process_kill", "process_list", "read"}) {
		t.Errorf("listed are %v", names)
	}
}

// A dispatcher's requests carry its prompt and a few schemas; the other commands are called by their names or found, and what is
// not its own is not there.
func TestTheDispatchersPrefixIsShort(t *testing.T) {
	t.Parallel()
	a := hungHome(t, "", "")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Use tabs."), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := runsetup.SessionOptions{Dir: dir, Model: "demo/script", Agent: "dispatcher"}
	all, said := heads(t, a, opts, "!say hello", "!call create_project {\"name\":\"My Site\"}\n!---\n!call pause_project {\"project_id\":\"my-site\"}\n!---\n"+
		"!call find_tools {\"query\":\"push a branch\"}\n!---\n!say {{last}}\n!---", "!call get_project {\"project_id\":\"my-site\"}\n!---\n!say {{last}}", "!call bash {\"command\":\"true\"}\n!---\n!say {{last}}")
	first := all[0]
	if n := tokensOf(first); n > dispatcherTokens {
		t.Errorf("%d tokens stand before a dispatcher's conversation, %d are the bar: %v", n, dispatcherTokens, toolNames(first))
	}
	if names := toolNames(first); len(names) > 15 || !slices.Contains(names, "create_task") || !slices.Contains(names, "find_tools") || slices.Contains(names, "read") {
		t.Errorf("listed are %v", names)
	}
	if strings.Contains(first.System, "Use tabs.") || !strings.HasPrefix(first.System, "You are dispatcher.") {
		t.Errorf("the prompt is %s", first.System)
	}
	for _, want := range []string{"push_branch", `"status":"PAUSED"`, "Unknown tool: bash"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
}

// dispatcherTokens is half of what the schemas of all its commands come to.
const dispatcherTokens = 3600
