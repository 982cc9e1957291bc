package permit

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"chorus/internal/permit/shell"
)

// Parts of the presets' patterns. RE2 has no lookahead, so "any name
// but these" is spelled out letter by letter.
const (
	// anyName is a path element other than "." and "..".
	anyName = `(?:[^/.][^/]*|\.[^/.][^/]*|\.\.[^/]+)`
	// NamePattern matches a path element that is also not .git, in any
	// case: git runs what it finds there without asking.
	NamePattern = `(?:[^/.][^/]*|\.[^/.gG][^/]*|\.[gG]|\.[gG][^/iI][^/]*|\.[gG][iI]|\.[gG][iI][^/tT][^/]*|\.[gG][iI][tT][^/]+|\.\.[^/]+)`
	// firstName is a first element that is not a named root.
	firstName = `(?:[^/.@][^/]*|\.[^/.][^/]*|\.\.[^/]+)`
	// FirstNamePattern is NamePattern for the first element, which must not be a named root.
	FirstNamePattern = `(?:[^/.@][^/]*|\.[^/.gG][^/]*|\.[gG]|\.[gG][^/iI][^/]*|\.[gG][iI]|\.[gG][iI][^/tT][^/]*|\.[gG][iI][tT][^/]+|\.\.[^/]+)`

	inWorkspace  = `(?:\.|` + firstName + `(?:/` + anyName + `)*)`
	ownFiles     = `(?:\.|` + FirstNamePattern + `(?:/` + NamePattern + `)*)`
	belowRoot    = `(?:/` + anyName + `)*`
	readers      = `tool:(?:read|list_files|search_files|upload):`
	plainReaders = `tool:(?:read|list_files|search_files):`
	writers      = `tool:(?:write|edit|apply_patch):`
)

// localGit matches git commands that stay in the repository and run nothing but git. It excludes
// options that write elsewhere or start programs, so those need approval.
const localGit = `tool:git:(?:add|am|apply|blame|branch|cat-file|check-ignore|checkout|cherry-pick|commit|describe|diff|init|log|` +
	`ls-files|ls-tree|merge|merge-base|mv|name-rev|reflog|reset|restore|rev-list|rev-parse|revert|rm|shortlog|show|show-ref|stash|` +
	`status|switch|tag)` +
	`(?:\s+(?:` + gitWord + `|-[A-Za-z0-9][^\s'"/]*|--|--(?:` + gitOptions + `)(?:=` + gitValue + `)?))*`

const (
	gitWord  = `(?:'[^'/-][^']*'|\$'[^'/-](?:[^'\\]|\\.)*'|"[^"/-][^"]*"|[^-/'"\s.][^\s]*|\.|\.[^-/'"\s.][^\s]*|\./[^\s]*)`
	gitValue = `(?:'[^']*'|"[^"]*"|[^\s'"]*)`

	gitOptions = `abbrev|abbrev-commit|abbrev-ref|abort|all|allow-empty|amend|annotate|author|before|after|boundary|branch|cached|check|` +
		`color|no-color|color-words|contains|continue|create|date|decorate|delete|deleted|detach|diff-algorithm|diff-filter|dry-run|` +
		`exclude-standard|exit-code|ff|ff-only|no-ff|first-parent|follow|force|format|graph|hard|heads|histogram|ignore-all-space|` +
		`ignore-space-change|ignored|include-untracked|index|initial-branch|intent-to-add|is-inside-work-tree|keep|keep-index|list|long|` +
		`max-count|merge|merged|no-merged|merges|no-merges|message|minimal|mixed|modified|name-only|name-status|no-commit|no-edit|` +
		`numstat|oneline|orphan|others|ours|theirs|patch|patience|points-at|porcelain|pretty|quiet|quit|raw|relative|reverse|root|short|` +
		`shortstat|show-current|show-toplevel|signoff|since|until|skip|soft|sort|source|squash|stage|staged|stat|summary|tags|text|` +
		`track|no-track|unified|untracked-files|update|verbose|verify|word-diff|worktree`
)

// What agents may do with the task queue: read it, and change it.
const (
	workReads = `list_projects|get_project|get_task_graph|get_project_channels|get_project_for_channel|list_repos|list_tasks|get_task|get_task_result|` +
		`get_task_diff|get_task_tree|get_task_plan|get_chain_health|get_agent_error|get_status|get_recent_events|get_token_usage|list_notes|` +
		`read_note|compare_specs_notes|project_git_status|project_git_log|project_git_diff|project_git_changed_files|list_workers|list_nodes|` +
		`project_read_file|project_search_files`
	workWrites = `create_project|edit_project|pause_project|resume_project|delete_project|set_active_project|set_project_channel|` +
		`set_control_interface|add_repo|create_task|edit_task|stop_task|restart_task|reopen_with_feedback|resolve_conflict|delete_task|` +
		`approve_task|approve_plan|reject_plan|delete_plan|skip_task|set_task_status|add_dependency|remove_dependency|orchestrator_control|write_note|append_note|open_notes_thread|` +
		`delete_note|promote_note|project_git_commit|project_git_push|project_git_branch|project_git_checkout|project_git_merge|` +
		`project_git_create_pr|project_run_command|restart_daemon|create_agent`
)

// Preset rules that are also used elsewhere.
const (
	infoTools    = `tool:(?:info|list_models|list_agents|read_agent_docs|work_notes|recall|search_channel|set_timer|activate_self|cancel_timer|process_list|process_logs):.*`
	processTools = `tool:(?:run_background|run_concurrent|add_process_hooks|process_[a-z_]+|claude_code):.*`
	selfEdit     = `tool:self_edit:(?:system_prompt|permissions|model|web_search)(?: .*)?`
	hookTools    = `tool:(?:create_hook|list_hooks|get_hook|edit_hook|delete_hook|list_hook_runs|get_hook_run|fire_hook|preview_hook|test_hook):.*`
	adminTools   = `tool:(?:agent|approval|audit|cost|mcpserver|memory|model|rule|schedule|session|setting|skill|system|token)_[a-z_]+:.*`
	pushes       = `tool:git:(?:push|merge_request)(?: .*)?`
)

// presetRules are the presets in listing order.
var presetRules = []struct {
	name  string
	rules Rules
}{
	{"open", Rules{Allow: []string{`.*`}}},
	{"standard", Rules{
		Allow: []string{
			readers + inWorkspace,
			readers + `@[^/]+` + belowRoot,
			writers + ownFiles,
			writers + `@(?:docs|memory)` + belowRoot,
			localGit,
			`tool:self_edit:docs ` + anyName + belowRoot,
			infoTools,
			`tool:(?:` + workReads + `):.*`,
		},
		Ask: []string{
			writers + `@(?:skills|events)` + belowRoot,
			writers + inWorkspace,
			`tool:bash:.*`,
			processTools,
			`tool:git:.*`,
			selfEdit,
			`tool:(?:web_search|web_fetch):.*`,
			`tool:(?:send_to_agent|spawn_agent):.*`,
			`tool:mcp__.*`,
			hookTools,
			`tool:(?:` + workWrites + `):.*`,
			adminTools,
		},
	}},
	{"guarded", Rules{
		Allow: []string{`.*`},
		Deny: []string{
			pushes,
			// Commands that package shell knows to change other machines.
			`tool:remote:.*`,
		},
	}},
	{"locked", Rules{
		Allow: []string{
			plainReaders + inWorkspace,
			plainReaders + `@(?:outputs|attachments)` + belowRoot,
		},
	}},
}

// compiledPresets compiles each preset on first use, so that programs which judge nothing do not pay for it.
var compiledPresets = func() map[string]func() (*Profile, error) {
	out := make(map[string]func() (*Profile, error), len(presetRules))
	for _, p := range presetRules {
		out[p.name] = sync.OnceValues(func() (*Profile, error) { return Compile(p.name, p.rules) })
	}
	return out
}()

// Presets lists the names of the built-in profiles.
func Presets() []string {
	out := make([]string, len(presetRules))
	for i, p := range presetRules {
		out[i] = p.name
	}
	return out
}

// About describes a built-in profile in a phrase; "" if there is no such profile.
func About(name string) string {
	return map[string]string{
		"standard": "reads and writes this folder; asks before commands and the network",
		"guarded":  "does everything but change remote things",
		"open":     "does everything without asking",
		"locked":   "reads this folder only",
	}[name]
}

// IsPreset reports whether a name is one of Presets.
func IsPreset(name string) bool { return slices.Contains(Presets(), name) }

// Preset returns a built-in profile. Calls with the same name share one.
func Preset(name string) (*Profile, error) {
	compile, ok := compiledPresets[name]
	if !ok {
		return nil, fmt.Errorf("unknown permission profile %q: the built-in ones are %s", name, strings.Join(Presets(), ", "))
	}
	return compile()
}

// Prepare loads what a built-in profile needs for judging. A program that is about to run an agent calls it
// in another goroutine while the database opens; the first call to judge waits for it or does the work
// itself.
func Prepare(name string) {
	if compile, ok := compiledPresets[name]; ok {
		_, _ = compile() // the first call to judge gets the same error
	}
	shell.Prepare()
}
