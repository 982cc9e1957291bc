package permit

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPossible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		rules Rules
		yes   []string
		no    []string
	}{
		{"silence", Rules{}, nil, []string{"read", "bash", "mcp__a__b", "file", "agent_comm"}},
		{"all", Rules{Allow: []string{".*"}}, []string{"read", "bash", "mcp__a__b", "git_push", "file", "agent_comm", "view"}, nil},
		{"all denied", Rules{Allow: []string{".*"}, Deny: []string{".*"}}, nil, []string{"read", "bash", "mcp__a__b"}},
		{"asked", Rules{Ask: []string{`tool:mcp__.*`}}, []string{"mcp__a__b"}, []string{"read", "mcp_read"}},
		{"one server", Rules{Allow: []string{`tool:mcp__a__.*`}}, []string{"mcp__a__b", "mcp__a__c"}, []string{"mcp__b__b"}},
		{"one server denied", Rules{Allow: []string{".*"}, Deny: []string{`tool:mcp__a__.*`}}, []string{"mcp__b__b"}, []string{"mcp__a__b"}},
		{"by a list", Rules{Allow: []string{".*"}, Deny: []string{`tool:(?:x|y):.*|tool:z:.*`}}, []string{"w", "xx"}, []string{"x", "y", "z"}},
		{"in a group", Rules{Allow: []string{".*"}, Deny: []string{`(tool:x:(.*))`}}, []string{"y"}, []string{"x"}},
		{"in any case", Rules{Allow: []string{".*"}, Deny: []string{`(?i)TOOL:X:.*`}}, []string{"y"}, []string{"x"}},
		{"only some denied", Rules{Allow: []string{".*"}, Deny: []string{`tool:x:a.*`, `tool:y:.+`}}, []string{"x", "y"}, nil},
		{"deny that looks ahead", Rules{Allow: []string{".*"}, Deny: []string{`tool:x:\b.*`, `tool:y:$.*`}}, []string{"x", "y"}, nil},
		{"deny that ends at a line", Rules{Allow: []string{".*"}, Deny: []string{`(?-s)tool:x:.*`}}, []string{"x"}, nil},
		{"under another name", Rules{Allow: []string{`tool:view:.*`}}, []string{"read", "view", "list_files", "file"}, []string{"write"}},
		{"denied under another name", Rules{Allow: []string{".*"}, Deny: []string{`tool:write_file:.*`}}, []string{"read"}, []string{"write", "create_file"}},
		{"the old form", Rules{Allow: []string{`tool:file:view .*`}}, []string{"read", "file"}, []string{"bash"}},
		{"git by its command", Rules{Allow: []string{`tool:git_status:.*`}}, []string{"git", "git_status"}, []string{"bash"}},
		{"git by its detail", Rules{Allow: []string{`tool:git:status.*`}}, []string{"git", "git_status", "GitStatus"}, []string{"git_push"}},
		{"git denied", Rules{Allow: []string{".*"}, Deny: []string{`tool:git:push.*`}}, []string{"git", "git_status"}, []string{"git_push"}},
		{"git denied with words only", Rules{Allow: []string{".*"}, Deny: []string{`tool:git:push .*`}}, []string{"git_push"}, nil},
		{"a detail", Rules{Allow: []string{`tool:x:\{"a":1\}`}}, []string{"x"}, []string{"y"}},
		{"agents", Rules{Ask: []string{`tool:agent_comm:send .*`}}, []string{"send_to_agent", "agent_comm"}, []string{"bash"}},
	} {
		p := mustCompile(t, c.rules)
		for _, tool := range c.yes {
			if !p.Possible(tool) {
				t.Errorf("%s: %s is not possible", c.name, tool)
			}
		}
		for _, tool := range c.no {
			if p.Possible(tool) {
				t.Errorf("%s: %s is possible", c.name, tool)
			}
		}
	}
}

func TestPossibleOfThePresets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		preset string
		yes    []string
		no     []string
	}{
		{"open", []string{"read", "bash", "mcp__x__y", "anything"}, nil},
		{"standard", []string{"read", "write", "bash", "git_status", "mcp__x__y", "work_notes", "info", "web_fetch"}, []string{"anything", "mcp_read"}},
		{"guarded", []string{"read", "bash", "mcp__x__y", "git"}, []string{"remote"}},
		{"locked", []string{"read", "list_files", "search_files", "view"}, []string{"write", "edit", "apply_patch", "bash", "git", "mcp__x__y", "work_notes", "upload"}},
	} {
		p := mustPreset(t, c.preset)
		for _, tool := range c.yes {
			if !p.Possible(tool) {
				t.Errorf("%s: %s is not possible", c.preset, tool)
			}
		}
		for _, tool := range c.no {
			if p.Possible(tool) {
				t.Errorf("%s: %s is possible", c.preset, tool)
			}
		}
	}
}

// What is impossible is denied, whatever the call's arguments are.
func TestImpossibleMeansDenied(t *testing.T) {
	t.Parallel()
	more := []string{
		`tool:mcp__a__.*`, `tool:mcp__.*`, `tool:mcp__a__b:\{\}`, `tool:git_push:.*`, `tool:git_status:.*`, `tool:GitDiff:.*`, `tool:self_edit:docs.*`,
		`tool:self_edit_docs:.*`, `tool:agent_comm:.*`, `tool:agent_comm:send x`, `tool:info:.*`, `(?i)TOOL:READ:.*`, `tool:(?:read|edit):.*`, `tool:edit:.+`,
		`tool:git:.*|tool:bash:.*`, `.*push.*`, `tool:[^:]*:.*`, `tool:write:(a|b).*`, `tool:upload:.*`, `(tool:(bash|edit):)(.*)`, `tool:bash:\b.*`,
	}
	patterns := append(append([]string{}, somePatterns...), more...)
	tools := []string{
		"read", "write", "edit", "git", "git_status", "git_push", "GitDiff", "view", "file", "other", "bash", "run_background", "shell", "mcp__a__b", "mcp__c__d",
		"self_edit", "self_edit_docs", "agent_comm", "send_to_agent", "list_agents", "list_models", "info", "upload", "attach", "apply_patch",
	}
	details := []string{
		"", "{}", `{"a":1}`, "a/x", "view.txt", "push origin", "status", "../x", "/x", "view a/x", "x", "send x", "list", "docs a", "create b", "git push", "ls > a",
		"> a/b", "X=1", "a\nb", "rm -rf /",
	}
	rapid.Check(t, func(t *rapid.T) {
		list := func(name string, most int) []string {
			return rapid.SliceOfN(rapid.SampledFrom(patterns), 0, most).Draw(t, name)
		}
		p := must(t, Rules{Allow: list("allow", 3), Ask: list("ask", 2), Deny: list("deny", 2)})
		tool, detail := rapid.SampledFrom(tools).Draw(t, "tool"), rapid.SampledFrom(details).Draw(t, "detail")
		if p.Possible(tool) {
			return
		}
		req := Request{Tool: tool, Detail: detail}
		if j := p.Judge([]Request{req}, JudgeOptions{}); j.Verdict != Deny {
			t.Fatalf("%s is impossible, and %q is %s by %q", tool, detail, j.Verdict, j.Decision.Rule)
		}
	})
}
