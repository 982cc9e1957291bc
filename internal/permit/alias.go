package permit

import (
	"strings"

	"chorus/internal/permit/action"
	"chorus/internal/permit/shell"
)

// aliases are the names that other agents use for our tools. A rule under any of them is a rule for ours.
var aliases = map[string][]string{
	"read":            {"view", "read_file", "ReadFile"},
	"list_files":      {"view", "list", "ls", "ListFiles"},
	"search_files":    {"search_text", "grep", "SearchText"},
	"write":           {"create_file", "write_file", "append_file", "WriteFile", "remember"},
	"edit":            {"str_replace", "file_edit", "FileEdit", "HashlineEdit", "hashline_edit"},
	"apply_patch":     {"patch", "ApplyPatch"},
	"upload":          {"attach", "upload_file"},
	"bash":            {"run_command", "shell", "RunCommand"},
	"work_notes":      {"WorkNotes"},
	"send_to_agent":   {"agent_comm"},
	"read_agent_docs": {"agent_comm"},
	"list_agents":     {"agent_comm"},
	"list_models":     {"info"},
}

// canonicalNames maps tool names of other agents to ours. "view" covers both read and
// list_files; it maps to read, and the presets treat both alike.
var canonicalNames = map[string]string{
	"view": "read", "read_file": "read", "ReadFile": "read",
	"list": "list_files", "ls": "list_files", "ListFiles": "list_files",
	"search_text": "search_files", "grep": "search_files", "SearchText": "search_files",
	"create_file": "write", "write_file": "write", "append_file": "write", "WriteFile": "write", "remember": "write",
	"str_replace": "edit", "file_edit": "edit", "FileEdit": "edit", "HashlineEdit": "edit", "hashline_edit": "edit",
	"patch": "apply_patch", "ApplyPatch": "apply_patch",
	"attach": "upload", "upload_file": "upload",
	"run_command": "bash", "shell": "bash", "RunCommand": "bash",
	"WorkNotes": "work_notes",
}

// fileOps are the words that name an operation in the old form tool:file:<op> <path>.
var fileOps = map[string][]string{
	"read":        {"view", "read"},
	"list_files":  {"view", "list"},
	"write":       {"create", "append", "write"},
	"edit":        {"str_replace", "edit"},
	"apply_patch": {"patch"},
}

var fileOpTool = map[string]string{
	"view": "read", "read": "read", "list": "list_files", "create": "write", "append": "write", "write": "write",
	"str_replace": "edit", "edit": "edit", "patch": "apply_patch",
}

// names holds the strings that rules are matched against for one action.
type names struct {
	grant    []string // may allow, ask or deny
	stricter []string // may only make the verdict stricter: deny, or an explicit ask
	denyOnly []string // may only deny
}

// namesOf lists every name of an action. If mentioned is given, it omits alias
// tools that no rule names: most profiles name few of them.
func namesOf(given string, mention map[string]bool) names {
	tool, detail, ok := action.Split(given)
	if !ok {
		return names{grant: []string{given}}
	}
	main := given
	if t, d := canonicalName(tool, detail); t != tool || d != detail {
		tool, detail, main = t, d, action.Join(t, d)
	}
	n := names{grant: []string{main}}
	if main != given {
		n.denyOnly = append(n.denyOnly, given)
	}
	if action.IsPath(tool) {
		raw := detail
		if detail = action.CleanPath(raw); detail != raw {
			n.grant[0] = action.Join(tool, detail)
			n.denyOnly = append(n.denyOnly, main)
		}
	}
	m := mentionedNames(mention)
	for _, a := range aliases[tool] {
		if a != "agent_comm" {
			m.add(&n.grant, a, "", detail)
		}
	}
	n.addOldForms(tool, detail, m)
	return n
}

// mentionedNames is the set of alias tools that rules name; nil means all.
type mentionedNames map[string]bool

func (m mentionedNames) has(tool string) bool { return m == nil || m[family(tool)] }

// add adds the action of an operation and a detail if some rule names the tool.
func (m mentionedNames) add(to *[]string, tool, op, detail string) {
	if m.has(tool) {
		*to = append(*to, "tool:"+tool+":"+op+detail)
	}
}

// canonicalName maps the names of other agents to ours.
func canonicalName(tool, detail string) (string, string) {
	if c, ok := canonicalNames[tool]; ok {
		return c, detail
	}
	if op, ok := strings.CutPrefix(tool, "git_"); ok {
		return "git", joinDetail(op, detail)
	}
	if op, ok := strings.CutPrefix(tool, "self_edit_"); ok {
		return "self_edit", joinDetail(op, detail)
	}
	switch tool {
	case "GitStatus":
		return "git", joinDetail("status", detail)
	case "GitDiff":
		return "git", joinDetail("diff", detail)
	case "file":
		op, rest, _ := strings.Cut(detail, " ")
		if t, ok := fileOpTool[op]; ok && rest != "" {
			return t, rest
		}
		// Without an operation it may be any; assume writing, the strictest.
		return "write", detail
	case "agent_comm":
		op, rest, _ := strings.Cut(detail, " ")
		switch op {
		case "send":
			return "send_to_agent", rest
		case "read_docs":
			return "read_agent_docs", rest
		case "list":
			return "list_agents", rest
		}
	}
	return tool, detail
}

func joinDetail(op, detail string) string {
	if detail == "" || detail == "{}" {
		return op
	}
	return op + " " + detail
}

// addOldForms adds the names that have the operation in the detail, or in the tool.
func (n *names) addOldForms(tool, detail string, m mentionedNames) {
	switch tool {
	case "read", "list_files", "write", "edit", "apply_patch":
		if !m.has("file") {
			return
		}
		for _, op := range fileOps[tool] {
			m.add(&n.grant, "file", op+" ", detail)
		}
		// The bare form tool:file:<path> names no operation. A path that looks like an operation must not
		// match it: "tool:file:view.*" is meant to allow viewing, not writing to view.txt.
		to := &n.grant
		for op := range fileOpTool {
			if strings.HasPrefix(detail, op) {
				to = &n.denyOnly
			}
		}
		m.add(to, "file", "", detail)
	case "git":
		sub, args, _ := strings.Cut(detail, " ")
		m.add(&n.grant, "git_"+sub, "", args)
		switch sub {
		case "status":
			m.add(&n.grant, "GitStatus", "", args)
		case "diff":
			m.add(&n.grant, "GitDiff", "", args)
		}
		// A deny rule for the shell command also denies the tool that does the same.
		n.denyOnly = append(n.denyOnly, action.Join("bash", "git "+detail))
		if shell.GitChangesRemote(strings.Fields(detail)) {
			n.stricter = append(n.stricter, action.Join("remote", "git "+detail))
		}
	case "self_edit":
		op, rest, _ := strings.Cut(detail, " ")
		m.add(&n.grant, "self_edit_"+op, "", rest)
	case "send_to_agent":
		m.add(&n.grant, "agent_comm", "send ", detail)
	case "read_agent_docs":
		m.add(&n.grant, "agent_comm", "read_docs ", detail)
	case "list_agents":
		m.add(&n.grant, "agent_comm", "list", "")
	case "run_background", "run_concurrent":
		n.denyOnly = append(n.denyOnly, action.Join("bash", detail))
	}
}

// mentions returns the alias tools that some rule could match.
func mentions(lists ...[]rule) map[string]bool {
	m := map[string]bool{}
	var n nfa
	consider := func(tool string) {
		if m[tool] {
			return
		}
		spans := []shell.Span{{Text: "tool:" + tool}, {Gap: true}}
		for _, list := range lists {
			for i := range list {
				if !list[i].matchesAll && list[i].couldMatch(&n, spans) {
					m[tool] = true
					return
				}
			}
		}
	}
	for _, list := range aliases {
		for _, a := range list {
			consider(a)
		}
	}
	for _, t := range []string{"file", "GitStatus", "GitDiff", "git_", "self_edit_"} {
		consider(t)
	}
	return m
}

// family is the key into mentions: tools named after a subcommand share one key.
func family(tool string) string {
	for _, f := range []string{"git_", "self_edit_"} {
		if strings.HasPrefix(tool, f) {
			return f
		}
	}
	return tool
}
