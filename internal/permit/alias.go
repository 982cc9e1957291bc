package permit

import (
	"slices"
	"strings"

	"chorus/internal/permit/action"
	"chorus/internal/permit/shell"
)

// aliases are the names that other designs give to our tools. A rule under any of
// them is a rule for ours.
var aliases = map[string][]string{
	"read":            {"view", "read_file", "ReadFile"},
	"list_files":      {"view", "list", "ls", "ListFiles"},
	"search_files":    {"search_text", "grep", "SearchText"},
	"write":           {"create_file", "write_file", "append_file", "WriteFile"},
	"edit":            {"str_replace", "file_edit", "FileEdit", "HashlineEdit"},
	"apply_patch":     {"patch", "ApplyPatch"},
	"upload":          {"attach", "upload_file"},
	"bash":            {"run_command", "shell", "RunCommand"},
	"work_notes":      {"WorkNotes"},
	"send_to_agent":   {"agent_comm"},
	"read_agent_docs": {"agent_comm"},
	"list_agents":     {"agent_comm"},
	"list_models":     {"info"},
}

// canonical turns a name of another design into ours. "view" is both read and
// list_files; the reading one stands for it, the presets treat both alike.
var canonical = map[string]string{
	"view": "read", "read_file": "read", "ReadFile": "read",
	"list": "list_files", "ls": "list_files", "ListFiles": "list_files",
	"search_text": "search_files", "grep": "search_files", "SearchText": "search_files",
	"create_file": "write", "write_file": "write", "append_file": "write", "WriteFile": "write",
	"str_replace": "edit", "file_edit": "edit", "FileEdit": "edit", "HashlineEdit": "edit",
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

// names are the strings a rule is tried against.
type names struct {
	open  []string // may permit, and may deny
	tight []string // may only make stricter: deny, or an explicit ask
	shut  []string // may only deny
}

// Aliases are the other strings that mean the same action, canonical one first if
// the given one is not it.
func Aliases(action string) []string {
	n := namesOf(action, nil)
	var out []string
	for _, s := range slices.Concat(n.open, n.tight, n.shut) {
		if s != action && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// namesOf lists every name of an action. With mention, alias tools that no rule
// speaks of are left out: most profiles never name most of them.
func namesOf(given string, mention map[string]bool) names {
	tool, detail, ok := action.Split(given)
	if !ok {
		return names{open: []string{given}}
	}
	main := given
	if t, d := toCanonical(tool, detail); t != tool || d != detail {
		tool, detail, main = t, d, action.Join(t, d)
	}
	n := names{open: []string{main}}
	if main != given {
		n.shut = append(n.shut, given)
	}
	add := func(to *[]string, tool, detail string) {
		if mention == nil || mention[family(tool)] {
			*to = append(*to, action.Join(tool, detail))
		}
	}
	if action.IsPath(tool) {
		raw := detail
		if detail = action.CleanPath(raw); detail != raw {
			n.open[0] = action.Join(tool, detail)
			n.shut = append(n.shut, main)
		}
	}
	for _, a := range aliases[tool] {
		if a != "agent_comm" {
			add(&n.open, a, detail)
		}
	}
	oldForms(tool, detail, &n, add)
	return n
}

// toCanonical maps foreign names to ours.
func toCanonical(tool, detail string) (string, string) {
	if c, ok := canonical[tool]; ok {
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
		// Without an operation it may be any; writing is the strictest of them.
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

// oldForms adds the names that carry the operation in the detail, or in the tool.
func oldForms(tool, detail string, n *names, add func(*[]string, string, string)) {
	switch tool {
	case "read", "list_files", "write", "edit", "apply_patch":
		for _, op := range fileOps[tool] {
			add(&n.open, "file", op+" "+detail)
		}
		// The bare form tool:file:<path> says nothing of the operation. A path
		// that begins like one must not be taken for it: "tool:file:view.*" is
		// meant to allow viewing, not writing to view.txt.
		to := &n.open
		for op := range fileOpTool {
			if strings.HasPrefix(detail, op) {
				to = &n.shut
			}
		}
		add(to, "file", detail)
	case "git":
		sub, args, _ := strings.Cut(detail, " ")
		add(&n.open, "git_"+sub, args)
		switch sub {
		case "status":
			add(&n.open, "GitStatus", args)
		case "diff":
			add(&n.open, "GitDiff", args)
		}
		// A deny of the command in the shell denies the tool that does the same.
		n.shut = append(n.shut, action.Join("bash", "git "+detail))
		if shell.GitChangesRemote(strings.Fields(detail)) {
			n.tight = append(n.tight, action.Join("remote", "git "+detail))
		}
	case "self_edit":
		op, rest, _ := strings.Cut(detail, " ")
		add(&n.open, "self_edit_"+op, rest)
	case "send_to_agent":
		add(&n.open, "agent_comm", "send "+detail)
	case "read_agent_docs":
		add(&n.open, "agent_comm", "read_docs "+detail)
	case "list_agents":
		add(&n.open, "agent_comm", "list")
	case "run_background", "run_concurrent":
		n.shut = append(n.shut, action.Join("bash", detail))
	}
}

// mentions finds the alias tools that some rule could speak of.
func mentions(lists ...[]rule) map[string]bool {
	m := map[string]bool{}
	consider := func(tool string) {
		if m[tool] {
			return
		}
		spans := []shell.Span{{Text: "tool:" + tool}, {Gap: true}}
		for _, list := range lists {
			for i := range list {
				if !list[i].any && list[i].couldMatch(spans) {
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

// family is what mentions are counted by: tools named after a subcommand count as one.
func family(tool string) string {
	for _, f := range []string{"git_", "self_edit_"} {
		if strings.HasPrefix(tool, f) {
			return f
		}
	}
	return tool
}
