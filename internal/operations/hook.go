package operations

import (
	"context"
	"encoding/json"
	"time"

	"chorus/internal/operation"
)

// Hooks implements operations on hooks.
type Hooks interface {
	CreateHook(context.Context, operation.Caller, NewHook) (Hook, error)
	ListHooks(context.Context, operation.Caller, HookQuery) (operation.List[Hook], error)
	GetHook(context.Context, operation.Caller, HookRef) (Hook, error)
	EditHook(context.Context, operation.Caller, HookChanges) (Hook, error)
	DeleteHook(context.Context, operation.Caller, HookRef) (operation.None, error)
	ListHookRuns(context.Context, operation.Caller, HookRunQuery) (operation.List[HookRun], error)
	GetHookRun(context.Context, operation.Caller, HookRunRef) (HookRun, error)
	FireHook(context.Context, operation.Caller, HookFiring) (HookFired, error)
	PreviewHook(context.Context, operation.Caller, NewHook) (HookPreview, error)
	TestHook(context.Context, operation.Caller, HookRef) (HookTest, error)
}

// NewHook describes a new hook.
type NewHook struct {
	Name      string         `json:"name" minLen:"1" maxLen:"100" doc:"its name; the id is derived from it"`
	Trigger   operation.JSON `json:"trigger" slashDoc:"what starts it: times such as 'every weekday at 9', an event such as completed, or webhook" doc:"what starts it, as words ('every weekday at 9', an event such as completed, webhook) or as an object: {\"type\":\"periodic\",\"interval_seconds\":3600}, {\"type\":\"periodic\",\"schedule\":\"every weekday at 9\"}, {\"type\":\"event\",\"event_type\":\"completed\",\"where\":{\"stopReason\":\"limit\"}} or {\"type\":\"webhook\"}"`
	Prompt    string         `json:"promptTemplate,omitempty" maxLen:"100000" tool:"prompt_template" cli:"prompt" slash:"prompt" slashDoc:"what the model is asked" doc:"what the model is asked, with {{step_0}}, {{step_0.exit_code}}, {{event}}, {{event.field}}; left out: no model is asked"`
	Steps     operation.JSON `json:"contextSteps,omitzero" tool:"context_steps" cli:"steps" slash:"-" doc:"a list of steps that gather context: shell (command), read_file (path), http (url), db_query (query, params), git_diff (base_branch), search (query); each may have skip_llm_if_exit_zero, skip_llm_if_empty or skip_llm_if_status_ok"`
	Actions   operation.JSON `json:"actions,omitzero" slash:"-" doc:"a list of actions to take afterwards: say (session, text with {{response}}), shell (command) or operation (name, args)"`
	Cooldown  *int           `json:"cooldownSeconds,omitempty" min:"0" tool:"cooldown_seconds" cli:"cooldown" slash:"-" doc:"seconds between two runs; left out: 3600 for events, else none"`
	LLM       operation.JSON `json:"llmConfig,omitzero" tool:"llm_config" cli:"llm" slash:"-" doc:"its own model and the cost limit of a run: {\"provider\":\"openai\",\"model\":\"gpt-5-mini\",\"budget_usd\":0.1}"`
	Project   string         `json:"projectId,omitempty" maxLen:"64" tool:"project_id" cli:"project" slash:"-" doc:"the project it belongs to, to filter lists by"`
	Agent     string         `json:"agent,omitempty" maxLen:"64" noun:"agent" slash:"-" doc:"the agent whose profile, prompt and tools its runs use"`
	Workspace string         `json:"workspacePath,omitempty" maxLen:"4096" tool:"workspace" cli:"dir" slash:"-" doc:"the folder it works in; left out: its own"`
	Approve   bool           `json:"approve,omitempty" tool:"-" slash:"-" doc:"approve those of its steps and actions that need approval"`
	Key       string         `json:"-" key:"true"`
}

// HookChanges are the fields of a hook to change; others do not change.
type HookChanges struct {
	ID        string         `json:"id" minLen:"1" maxLen:"64" noun:"hook" tool:"hook_id" slash:"hook" doc:"the hook's id"`
	Enabled   *bool          `json:"enabled,omitempty" doc:"whether it runs"`
	Name      string         `json:"name,omitempty" maxLen:"100" slash:"-" doc:"another name; the id stays"`
	Trigger   operation.JSON `json:"trigger,omitzero" slash:"-" doc:"as in a new hook"`
	Prompt    *string        `json:"promptTemplate,omitempty" maxLen:"100000" tool:"prompt_template" cli:"prompt" slash:"prompt" doc:"as in a new hook"`
	Steps     operation.JSON `json:"contextSteps,omitzero" tool:"context_steps" cli:"steps" slash:"-" doc:"as in a new hook"`
	Actions   operation.JSON `json:"actions,omitzero" slash:"-" doc:"as in a new hook"`
	Cooldown  *int           `json:"cooldownSeconds,omitempty" min:"0" tool:"cooldown_seconds" cli:"cooldown" slash:"-" doc:"as in a new hook"`
	LLM       operation.JSON `json:"llmConfig,omitzero" tool:"llm_config" cli:"llm" slash:"-" doc:"as in a new hook; null: the agent's model, and no limit"`
	Project   *string        `json:"projectId,omitempty" maxLen:"64" tool:"project_id" cli:"project" slash:"-" doc:"as in a new hook"`
	Approve   bool           `json:"approve,omitempty" tool:"-" slash:"-" doc:"approve those of its steps and actions that need approval"`
	NewSecret bool           `json:"newSecret,omitempty" tool:"-" slash:"-" doc:"create a new secret for its webhook; the old one stops working"`
}

// HookQuery filters hooks.
type HookQuery struct {
	Project string `json:"projectId,omitempty" maxLen:"64" tool:"project_id" cli:"project" slash:"-" doc:"only those of a project"`
	Page
}

// HookRef names a hook.
type HookRef struct {
	ID string `json:"id" minLen:"1" maxLen:"64" noun:"hook" tool:"hook_id" slash:"hook" doc:"the hook's id"`
}

// HookFiring names a hook to run now.
type HookFiring struct {
	ID  string `json:"id" minLen:"1" maxLen:"64" noun:"hook" tool:"hook_id" slash:"hook" doc:"the hook's id"`
	Key string `json:"-" key:"true"`
}

// HookRunQuery names a hook whose runs to list.
type HookRunQuery struct {
	ID     string `json:"id" minLen:"1" maxLen:"64" noun:"hook" tool:"hook_id" slash:"hook" doc:"the hook's id"`
	Cursor string `json:"cursor,omitempty" maxLen:"1024" cli:"-" slash:"-" doc:"next of the previous page"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"200" default:"10" doc:"how many"`
}

// HookRunRef names a run.
type HookRunRef struct {
	ID string `json:"id" minLen:"1" maxLen:"64" doc:"the run's id"`
}

// Hook gathers context, asks a model and acts, on an event or at set times.
type Hook struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	ProjectID string          `json:"projectId,omitempty"`
	Enabled   bool            `json:"enabled"`
	Trigger   json.RawMessage `json:"trigger"`
	Starts    string          `json:"starts"` // the trigger in a few words
	Steps     json.RawMessage `json:"contextSteps,omitempty"`
	Prompt    string          `json:"promptTemplate,omitempty"`
	Actions   json.RawMessage `json:"actions,omitempty"`
	Cooldown  int             `json:"cooldownSeconds"`
	Model     string          `json:"model,omitempty"`
	BudgetUSD float64         `json:"budgetUsd,omitempty"` // of a run
	Owner     string          `json:"owner"`               // whose rights and money it uses
	OwnerName string          `json:"ownerName"`
	Agent     string          `json:"agent"`
	Workspace string          `json:"workspacePath,omitempty"`
	Approved  bool            `json:"approved"` // its steps and actions need no approval, or somebody has approved them
	Waits     []string        `json:"waitsForYes,omitempty"`
	Due       time.Time       `json:"due,omitzero"`
	LastRunAt time.Time       `json:"lastRunAt,omitzero"`
	Passed    int             `json:"passed,omitempty"` // triggers that did not start a run
	PassedWhy string          `json:"passedWhy,omitempty"`
	Webhook   string          `json:"webhookPath,omitempty"` // the path of its webhook on the server
	Secret    string          `json:"secret,omitempty"`      // of its webhook; shown once
	CreatedAt time.Time       `json:"createdAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
	Runs      []HookRun       `json:"runs,omitempty"` // newest first
}

// HookRun is one run of a hook.
type HookRun struct {
	ID        string          `json:"id"`
	HookID    string          `json:"hookId"`
	Reason    string          `json:"triggerReason"` // periodic, event:<type>, manual or webhook
	Status    string          `json:"status"`        // waiting, running, completed, failed or skipped
	Stage     string          `json:"stage,omitempty"`
	Why       string          `json:"why,omitempty"` // why it was skipped or failed
	Skipped   string          `json:"skippedReason,omitempty"`
	Prompt    string          `json:"prompt,omitempty"`
	Response  string          `json:"response,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Tokens    int             `json:"tokensUsed"`
	CostUSD   float64         `json:"costUsd"`
	Event     json.RawMessage `json:"event,omitempty"`
	Steps     json.RawMessage `json:"contextResults,omitempty"`
	Actions   json.RawMessage `json:"actionsTaken,omitempty"`
	CreatedAt time.Time       `json:"createdAt"`
	StartedAt time.Time       `json:"startedAt,omitzero"`
	EndedAt   time.Time       `json:"completedAt,omitzero"`
}

// HookPreview is what a hook would do, before it is saved.
type HookPreview struct {
	Starts string      `json:"starts"`         // the trigger in a few words
	Next   []time.Time `json:"next,omitempty"` // when it would run, at set times
	Does   []string    `json:"does"`           // in order
	Waits  []string    `json:"waitsForYes,omitempty"`
}

// HookTest is the result of running the steps of a hook.
type HookTest struct {
	Steps   json.RawMessage `json:"contextResults,omitempty"`
	Skipped string          `json:"skippedReason,omitempty"` // why no model would be asked and no action taken
	Why     string          `json:"why,omitempty"`           // why it would fail
	Prompt  string          `json:"prompt,omitempty"`        // the prompt for the model
	Actions []string        `json:"actions,omitempty"`       // the actions it would take
}

// HookFired is the result of firing a hook.
type HookFired struct {
	Fired  string `json:"fired"`
	Run    string `json:"run"`
	Status string `json:"status"`
}

// The operations on hooks.
var (
	CreateHook = operation.New(operation.Info{Name: "hook.create", Help: "Create a hook that gathers context and asks a model on an event or at set times", Scope: operation.Chat, Effect: operation.Creates,
		Doc: "It runs with your rights and your money, as they are when it runs. Steps that need approval run only with\n" +
			"--approve, which is valid until they change. `chorus serve` runs hooks.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict}, Secret: true,
		HTTP: []operation.HTTP{{Route: "POST /api/hooks", ID: "createHook", Body: "NewHook", Status: 201}},
		CLI: []operation.CLI{{Words: "hook create", Args: "NAME [PROMPT]",
			Example: "  chorus hook create 'Broken build' 'The tests failed: {{step_0}} What is the cause?' --when 'every hour' --run 'make test' --skip-ok --dir . --approve\n" +
				"  chorus hook create 'Limits' 'A run stopped at its limit: {{event}} What should be split?' --on completed --where stopReason=limit\n" +
				"  chorus hook create Deploys 'Sum up for the team: {{event}}' --webhook --say 01J9"}},
		Slash: []operation.Slash{{Words: "hook create", Require: "promptTemplate", Help: "Ask a model automatically, at set times or on an event", Example: "name:News trigger:every weekday at 9 prompt:What is new?",
			Show: "hook `{id}` {enabled:runs|needs approval}: {starts}\n{waitsForYes:list}"}},
		Tool: "create_hook", Page: "/hooks"}, Hooks.CreateHook)

	ListHooks = operation.New(operation.Info{Name: "hook.list", Help: "List hooks, the newest first", Scope: operation.Read,
		HTTP:  []operation.HTTP{{Route: "GET /api/hooks", ID: "listHooks"}},
		CLI:   []operation.CLI{{Words: "hook list"}},
		Slash: []operation.Slash{{Words: "hook list", Show: "- **{id}** {enabled:on|off}, {starts:60}\n  last run {lastRunAt:minute}"}},
		Tool:  "list_hooks", Page: "/hooks", Label: "{name} ({enabled:on|off}), {starts:50}",
		Columns: "ID=id | STARTS=starts:40 | ENABLED=enabled | LAST RUN=lastRunAt:minute | DUE=due:minute | AGENT=agent | OWNER=ownerName:30",
		Empty:   "there are no hooks; create one: chorus hook create NAME PROMPT --when 'every weekday at 9'"}, Hooks.ListHooks)

	GetHook = operation.New(operation.Info{Name: "hook.get", Help: "Show a hook with its last runs", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/hooks/{id}", ID: "getHook"}},
		CLI:    []operation.CLI{{Words: "hook show", Args: "ID"}},
		Slash: []operation.Slash{{Words: "hook show", Example: "hook:broken-build",
			Show: "**{name}** `{id}` {enabled:on|off}, {starts}\nnext {due:minute}\nlast run {lastRunAt:minute}\n{waitsForYes:list}\n{promptTemplate:block}\n{contextSteps:block}\n{actions:block}"}},
		Tool: "get_hook", Page: "/hooks"}, Hooks.GetHook)

	EditHook = operation.New(operation.Info{Name: "hook.edit", Help: "Change fields of a hook", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict}, Secret: true,
		HTTP: []operation.HTTP{{Route: "PATCH /api/hooks/{id}", ID: "editHook", Body: "HookChanges"}},
		CLI: []operation.CLI{{Words: "hook edit", Args: "ID", Example: "  chorus hook edit broken-build --enabled=false\n  chorus hook edit broken-build --approve\n" +
			"  chorus hook edit deploys --new-secret"}},
		Slash: []operation.Slash{
			{Words: "hook enable", Options: "id", Set: map[string]any{"enabled": new(true)}, Help: "Let a hook run", Example: "hook:broken-build", Show: "hook `{id}` is {enabled:on|off}\n{waitsForYes:list}"},
			{Words: "hook disable", Options: "id", Set: map[string]any{"enabled": new(false)}, Help: "Stop a hook from running until it is enabled", Example: "hook:broken-build", Show: "hook `{id}` is {enabled:on|off}"}},
		Tool: "edit_hook"}, Hooks.EditHook)

	DeleteHook = operation.New(operation.Info{Name: "hook.delete", Help: "Delete a hook and its run history; a current run is stopped", Scope: operation.Chat, Effect: operation.Destroys,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/hooks/{id}", ID: "deleteHook"}},
		CLI:    []operation.CLI{{Words: "hook delete", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "hook delete", Example: "hook:broken-build"}},
		Tool:   "delete_hook", Done: "hook {id} deleted"}, Hooks.DeleteHook)

	ListHookRuns = operation.New(operation.Info{Name: "hook.runs", Help: "Show the last runs of a hook", Scope: operation.Read,
		Errors:  []operation.Kind{operation.NotFound},
		HTTP:    []operation.HTTP{{Route: "GET /api/hooks/{id}/runs", ID: "listHookRuns"}},
		CLI:     []operation.CLI{{Words: "hook runs", Args: "ID"}},
		Slash:   []operation.Slash{{Words: "hook runs", Options: "id", Example: "hook:broken-build", Show: "- `{id}` {status}, {createdAt:minute}, {triggerReason}\n  {why:100}{response:200}"}},
		Page:    "/hooks",
		Tool:    "list_hook_runs",
		Columns: "RUN=id | REASON=triggerReason | STATUS=status | STARTED=createdAt:minute | TOKENS=tokensUsed | WHY=why:60 | RESPONSE=response:60",
		Empty:   "the hook has not run yet; run it now: chorus hook fire ID"}, Hooks.ListHookRuns)

	GetHookRun = operation.New(operation.Info{Name: "hook.run", Help: "Show a run of a hook with its steps, prompt and answer", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/hook-runs/{id}", ID: "getHookRun"}},
		CLI:    []operation.CLI{{Words: "hook run", Args: "ID", Example: "  chorus hook run 01k9"}},
		Tool:   "get_hook_run"}, Hooks.GetHookRun)

	FireHook = operation.New(operation.Info{Name: "hook.fire", Help: "Run a hook now, ignoring its cooldown", Scope: operation.Chat, Effect: operation.Creates,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/hooks/{id}/fire", ID: "fireHook", Status: 202}},
		CLI:    []operation.CLI{{Words: "hook fire", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "hook run", Example: "hook:broken-build", Show: "hook `{fired}` runs as `{run}`; `/hook runs` shows the result"}},
		Tool:   "fire_hook", Done: "hook {fired} runs: chorus hook run {run}"}, Hooks.FireHook)

	PreviewHook = operation.New(operation.Info{Name: "hook.preview", Help: "Show what a hook would do, without saving it", Scope: operation.Chat,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/hooks/preview", ID: "previewHook", Body: "NewHook"}},
		CLI:    []operation.CLI{{Words: "hook preview", Args: "NAME [PROMPT]", Example: "  chorus hook preview 'Broken build' 'Why? {{step_0}}' --when 'every hour' --run 'make test' --skip-ok --dir ."}},
		Slash: []operation.Slash{{Words: "hook preview", Require: "promptTemplate", Help: "Show what a hook would do, without saving it", Example: "name:News trigger:every weekday at 9 prompt:What is new?",
			Show: "{starts}\n{next:list}\n{does:list}\n{waitsForYes:list}"}},
		Tool: "preview_hook", Page: "/hooks"}, Hooks.PreviewHook)

	TestHook = operation.New(operation.Info{Name: "hook.test", Help: "Run the steps of a hook now, without asking a model or taking actions", Scope: operation.Chat, Effect: operation.Changes,
		Doc:    "The steps run with the hook's rights; steps that still need approval are listed. The prompt is what the model would be\nasked, with the event of the last run if there was one.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/hooks/{id}/test", ID: "testHook"}},
		CLI:    []operation.CLI{{Words: "hook test", Args: "ID"}},
		Slash: []operation.Slash{{Words: "hook test", Help: "Run the steps of a hook now, without asking a model or taking actions", Example: "hook:broken-build",
			Show: "{why}\n{skippedReason}\n{contextResults:block}\n{prompt:block}\n{actions:list}"}},
		Tool: "test_hook", Page: "/hooks"}, Hooks.TestHook)
)

func hooks() []operation.Any {
	return []operation.Any{CreateHook, ListHooks, GetHook, EditHook, DeleteHook, ListHookRuns, GetHookRun, FireHook, PreviewHook, TestHook}
}

// WebhookReceived is the result of an incoming webhook.
type WebhookReceived struct {
	Run   string `json:"run,omitempty"`
	Again bool   `json:"again,omitempty"` // it was a repetition, and nothing was done
	Why   string `json:"why,omitempty"`   // no run was started
}
