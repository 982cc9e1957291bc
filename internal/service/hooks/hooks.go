// Package hooks implements the operations on hooks, and the work of their runs.
package hooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/hook"
	"chorus/internal/hook/runner"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/pattern"
	"chorus/internal/runsetup"
	"chorus/internal/service"
	"chorus/internal/store/hooks"
	"chorus/internal/text"
)

// Handler implements the operations on hooks.
type Handler struct {
	Options
	app      *service.Service
	sessions *service.Handler
	rows     *hooks.Store
}

// Options are what a Handler needs besides sessions.
type Options struct {
	// Changed is called when this process added or changed hooks, or started runs of them.
	Changed func()
	// Cancel ends the current run of a hook.
	Cancel func(id string)
}

// New returns a handler that uses another one for sessions and their messages.
func New(app *service.Service, sessions *service.Handler, o Options) *Handler {
	return &Handler{o, app, sessions, hooks.New(app.DB)}
}

var _ operations.Hooks = (*Handler)(nil)

const (
	// shownHookRuns is the default number of runs in a list.
	shownHookRuns = 10
	// shownTimes is how many future dates are shown.
	shownTimes = 5
	// maxHooks is the limit per owner.
	maxHooks = 200
	// shownWords limits the text of a prompt or an answer in a list.
	shownWords = 500
)

var notInID = pattern.Lazy(`[^a-z0-9]+`)

// hookID derives an id from a name.
func hookID(name string) string {
	slug := strings.Trim(notInID().ReplaceAllString(strings.ToLower(name), "-"), "-")
	if len(slug) > 48 {
		slug = strings.Trim(slug[:48], "-")
	}
	if slices.Contains(reservedIDs, slug) {
		slug += "-hook"
	}
	return cmp.Or(slug, "hook")
}

// reservedIDs would conflict with other pages and addresses.
var reservedIDs = []string{"new", "in", "preview"}

// draftHook returns the described hook without saving it.
func (o *Handler) draftHook(ctx context.Context, by operation.Caller, in operations.NewHook, name string) (hook.Hook, error) {
	now := o.app.Now().Truncate(time.Microsecond)
	h := hook.Hook{ID: name, Name: in.Name, Project: in.Project, Owner: by.Principal, Agent: cmp.Or(in.Agent, chat.DefaultAgent), Enabled: true, Created: now, Updated: now}
	h.Template = in.Prompt
	if err := o.readHook(&h, operations.HookChanges{Trigger: in.Trigger, Steps: in.Steps, Actions: in.Actions, LLM: in.LLM, Cooldown: in.Cooldown}); err != nil {
		return h, err
	}
	if in.Cooldown == nil && h.Trigger.Type == hook.OnEvent {
		h.Cooldown = hook.DefaultCooldown
	}
	return h, o.placeHook(ctx, by, &h, in.Workspace)
}

// CreateHook implements the operation of that name.
func (o *Handler) CreateHook(ctx context.Context, by operation.Caller, in operations.NewHook) (operations.Hook, error) {
	key := ""
	if in.Key != "" {
		key = id.Of("hook", by.Principal.String(), in.Key)
		if before, err := o.rows.HookMadeBy(ctx, key); err == nil {
			return o.showHook(ctx, before), nil
		}
	}
	if mine, err := o.rows.Hooks(ctx, by.Principal.String()); err != nil || len(mine) >= maxHooks {
		return operations.Hook{}, cmp.Or(err, error(operation.Errorf(operation.Conflict, "you have %d hooks, which is the limit; delete some first", len(mine))))
	}
	h, err := o.draftHook(ctx, by, in, hookID(in.Name))
	if err != nil {
		return operations.Hook{}, err
	}
	if err := o.approveHook(ctx, by, &h, in.Approve); err != nil {
		return operations.Hook{}, err
	}
	if h.Trigger.Type == hook.Webhook {
		h.Secret = newSecret()
	}
	for n := 2; ; n++ {
		added, err := o.rows.AddHook(ctx, h, key)
		if err != nil {
			return operations.Hook{}, err
		}
		if added {
			break
		}
		if n > maxHooks {
			return operations.Hook{}, operation.Errorf(operation.Conflict, "there are too many hooks called %q; choose another name", h.Name)
		}
		h.ID = fmt.Sprintf("%s-%d", hookID(in.Name), n)
		if in.Workspace == "" && h.Agent == chat.DefaultAgent {
			if err := o.placeHook(ctx, by, &h, ""); err != nil {
				return operations.Hook{}, err
			}
		}
	}
	o.hooksChanged()
	shown := o.showHook(ctx, h)
	shown.Secret = h.Secret
	return shown, nil
}

// newSecret makes a secret in the format of Standard Webhooks.
func newSecret() string {
	data := make([]byte, 24)
	_, _ = rand.Read(data) // it never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(data)
}

// llmConfig is a hook's own model.
type llmConfig struct {
	Provider  string  `json:"provider"`
	Model     string  `json:"model"`
	BaseURL   string  `json:"base_url"`
	BudgetUSD float64 `json:"budget_usd"`
}

// readHook parses the given parts of a definition.
func (o *Handler) readHook(h *hook.Hook, in operations.HookChanges) (err error) {
	now := o.app.Now()
	if !in.Trigger.IsZero() {
		if h.Trigger, err = hook.ParseTrigger(in.Trigger.Raw, runner.EventTypes(), now); err != nil {
			return operation.InvalidField("trigger", "%s", err)
		}
		h.Due, h.Since = h.Trigger.Next(now), now
	}
	if !in.Steps.IsZero() {
		if h.Steps, err = hook.ParseSteps(in.Steps.Raw, o.queryNames()); err != nil {
			return operation.InvalidField("contextSteps", "%s", err)
		}
	}
	if !in.Actions.IsZero() {
		if h.Actions, err = hook.ParseActions(in.Actions.Raw, hookOperations()); err != nil {
			return operation.InvalidField("actions", "%s", err)
		}
	}
	if in.Cooldown != nil {
		h.Cooldown = time.Duration(*in.Cooldown) * time.Second
	}
	if !in.LLM.IsZero() {
		if err := o.readModel(h, in.LLM.Raw); err != nil {
			return err
		}
	}
	if err := h.Check(); err != nil {
		return operation.InvalidField("", "%s", err)
	}
	return nil
}

func (o *Handler) readModel(h *hook.Hook, data []byte) error {
	h.Model, h.Budget = "", 0
	if string(data) == "null" { // back to the agent's model
		return nil
	}
	var llm llmConfig
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	if err := d.Decode(&llm); err != nil {
		return operation.InvalidField("llmConfig", "llm_config must be an object with provider, model and budget_usd: %s", err)
	}
	switch {
	case llm.BaseURL != "":
		return operation.InvalidField("llmConfig", "base_url can only be set for a provider in the configuration, because prompts and keys are sent there")
	case llm.BudgetUSD < 0 || llm.BudgetUSD > 1e6:
		return operation.InvalidField("llmConfig", "budget_usd must be from 0 (no limit of its own) to a million dollars")
	}
	h.Budget = int64(ledger.FromUSD(llm.BudgetUSD))
	if llm.Provider == "" && llm.Model == "" {
		return nil
	}
	checked := runsetup.SessionOptions{Dir: o.app.Home.Dir(), Provider: llm.Provider, Model: llm.Model}
	if err := o.app.Setup.Check(&checked); err != nil {
		return operation.InvalidField("llmConfig", "%s", o.app.Logs.Redactor().Text(err.Error()))
	}
	h.Model = checked.Model
	return nil
}

// placeHook returns where a hook works: in the given folder, in its agent's workspace, or in its own folder.
func (o *Handler) placeHook(ctx context.Context, by operation.Caller, h *hook.Hook, dir string) (err error) {
	thread, err := stepsThread(*h)
	if err != nil {
		return operation.InvalidField("agent", "%q cannot be an agent's name: 2 to 32 of a–z, 0–9 and hyphens", h.Agent)
	}
	if h.Agent != chat.DefaultAgent && !o.app.Settings.Agents().Exists(h.Agent) {
		return operation.InvalidField("agent", "there is no agent %q", h.Agent)
	}
	if h.Dir, err = o.sessions.Workplace(by, operations.NewSession{WorkspacePath: dir, Agent: h.Agent}, thread); err != nil {
		return err
	}
	if err := o.sessions.MayWork(operation.Caller{Principal: h.Owner, Scopes: []operation.Scope{operation.Chat}}, journal.Thread{ID: thread, Dir: h.Dir}); err != nil && !h.Owner.Owns() {
		return err // it works unattended, so only in folders that are open to everybody
	}
	if h.Dir == o.sessions.Scratch(thread) {
		_, err = o.app.Home.Ensure(h.Dir)
	}
	return err
}

// approveHook checks what a hook would run. Denied calls cannot be in a hook; calls that need approval must be approved,
// which an agent cannot do.
func (o *Handler) approveHook(ctx context.Context, by operation.Caller, h *hook.Hook, yes bool) error {
	waits, err := o.waitsForYes(ctx, *h)
	if err != nil {
		return err
	}
	h.Approved = ""
	switch {
	case len(waits) == 0:
	case by.Through != nil:
		h.Enabled = false // until a person approves it
	case !yes:
		return operation.InvalidField("approve", "%s needs approval; check it, then approve it with --approve (approve: true)", strings.Join(waits, ", and "))
	default:
		h.Approved = h.Digest()
	}
	return nil
}

// waitsForYes returns the steps and actions of a hook that need approval. The error says what is denied.
func (o *Handler) waitsForYes(ctx context.Context, h hook.Hook) (waits []string, err error) {
	acting, err := hook.ActingFor(h, chat.Principal{})
	if err != nil {
		return nil, err
	}
	check := func(name string, call runsetup.UnattendedCall, ok bool) error {
		if !ok {
			return nil
		}
		err := o.app.Setup.JudgeUnattended(ctx, call)
		var denied *runsetup.DeniedError
		switch {
		case errors.As(err, &denied) && denied.Asked:
			waits = append(waits, name)
		case errors.As(err, &denied):
			return operation.Errorf(operation.Forbidden, "%s: %s", name, denied.Why)
		case err != nil:
			return operation.InvalidField("", "%s: %s", name, o.app.Logs.Redactor().Text(err.Error()))
		}
		return nil
	}
	run := hook.Run{ID: "check", Acting: acting}
	for i, s := range h.Steps {
		call, ok := stepCall(h, run, s, nil)
		if err := check(fmt.Sprintf("step_%d (%s)", i, s.Type), call, ok); err != nil {
			return nil, err
		}
	}
	for i, a := range h.Actions {
		call, ok := o.actionCall(h, run, a, a.Args)
		if err := check(fmt.Sprintf("action %d (%s)", i, a.Type), call, ok); err != nil {
			return nil, err
		}
	}
	return waits, nil
}

// ListHooks implements the operation of that name.
func (o *Handler) ListHooks(ctx context.Context, by operation.Caller, in operations.HookQuery) (out operation.List[operations.Hook], err error) {
	owner := by.Principal.String()
	if by.May(operation.Admin) {
		owner = ""
	} else if owner == "" {
		return out, nil
	}
	rows, err := o.rows.Hooks(ctx, owner)
	if err != nil {
		return out, err
	}
	rows = slices.DeleteFunc(rows, func(h hook.Hook) bool { return in.Project != "" && h.Project != in.Project })
	page, err := operation.PageBehind(rows, func(h hook.Hook) string { return h.ID }, in.Cursor, in.Most())
	for _, h := range page.Items {
		out.Items = append(out.Items, o.showHook(ctx, h))
	}
	out.Next = page.Next
	return out, err
}

// GetHook implements the operation of that name.
func (o *Handler) GetHook(ctx context.Context, by operation.Caller, in operations.HookRef) (operations.Hook, error) {
	h, err := o.findHook(ctx, by, in.ID)
	if err != nil {
		return operations.Hook{}, err
	}
	shown := o.showHook(ctx, h)
	if !shown.Approved {
		shown.Waits, _ = o.waitsForYes(ctx, h) // calls that are denied by now are reported when it runs
	}
	runs, err := o.rows.HookRuns(ctx, h.ID, shownHookRuns)
	for _, r := range runs {
		shown.Runs = append(shown.Runs, showRun(r, false))
	}
	return shown, err
}

// EditHook implements the operation of that name.
func (o *Handler) EditHook(ctx context.Context, by operation.Caller, in operations.HookChanges) (operations.Hook, error) {
	h, err := o.findHook(ctx, by, in.ID)
	if err != nil {
		return operations.Hook{}, err
	}
	read, now := h.Updated, o.app.Now()
	if in.Name == "" && in.Enabled == nil && in.Trigger.IsZero() && in.Prompt == nil && in.Steps.IsZero() && in.Actions.IsZero() && in.Cooldown == nil && in.LLM.IsZero() && in.Project == nil && !in.Approve && !in.NewSecret {
		return operations.Hook{}, operation.InvalidField("", "No fields to update")
	}
	h.Name = cmp.Or(in.Name, h.Name)
	if in.Prompt != nil {
		h.Template = *in.Prompt
	}
	if in.Project != nil {
		h.Project = *in.Project
	}
	if err := o.readHook(&h, in); err != nil {
		return operations.Hook{}, err
	}
	if in.Enabled != nil && *in.Enabled && !h.Enabled {
		h.Since, h.Due = now, h.Trigger.Next(now) // events while it was off do not count
	}
	if in.Enabled != nil {
		h.Enabled = *in.Enabled
	}
	if in.Approve || h.Enabled && h.Approved != h.Digest() {
		if err := o.approveHook(ctx, by, &h, in.Approve); err != nil {
			return operations.Hook{}, err
		}
	}
	fresh := h.Trigger.Type == hook.Webhook && (in.NewSecret || h.Secret == "")
	if fresh {
		h.Secret = newSecret()
	}
	h.Updated = now.Truncate(time.Microsecond)
	if changed, err := o.rows.UpdateHook(ctx, h, read); err != nil {
		return operations.Hook{}, err
	} else if !changed {
		return operations.Hook{}, operation.Errorf(operation.Conflict, "somebody else has changed the hook %s meanwhile; check it and try again", h.ID)
	}
	o.hooksChanged()
	shown := o.showHook(ctx, h)
	if fresh {
		shown.Secret = h.Secret
	}
	return shown, nil
}

// DeleteHook implements the operation of that name. A current run ends.
func (o *Handler) DeleteHook(ctx context.Context, by operation.Caller, in operations.HookRef) (operation.None, error) {
	h, err := o.findHook(ctx, by, in.ID)
	if err != nil {
		return operation.None{}, err
	}
	runs, err := o.rows.HookRuns(ctx, h.ID, maxHooks)
	if err != nil {
		return operation.None{}, err
	}
	if there, err := o.rows.RemoveHook(ctx, h.ID); err != nil {
		return operation.None{}, err
	} else if !there {
		return operation.None{}, noHook(in.ID)
	}
	o.Cancel(h.ID)
	for _, r := range runs {
		if r.Thread != "" && !r.Over() {
			if _, err := o.sessions.Engine.Abort(ctx, r.Thread, by.Principal.String(), true); err != nil && !errors.Is(err, journal.ErrUnknown) {
				return operation.None{}, err
			}
		}
	}
	o.hooksChanged()
	return operation.None{}, nil
}

// ListHookRuns implements the operation of that name.
func (o *Handler) ListHookRuns(ctx context.Context, by operation.Caller, in operations.HookRunQuery) (out operation.List[operations.HookRun], err error) {
	h, err := o.findHook(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	var after hook.Run
	if in.Cursor != "" {
		if after, err = o.rows.HookRun(ctx, in.Cursor); errors.Is(err, journal.ErrUnknown) || err == nil && after.Hook != h.ID {
			return out, operation.ChangedList()
		}
		if err != nil {
			return out, err
		}
	}
	out.Items = []operations.HookRun{} // an empty list instead of null
	most := operation.Limit(in.Limit, shownHookRuns, maxHooks)
	runs, err := o.rows.HookRunsBefore(ctx, h.ID, after, most+1)
	for _, r := range runs[:min(len(runs), most)] {
		out.Items = append(out.Items, showRun(r, false))
	}
	if len(runs) > most {
		out.Next = runs[most-1].ID
	}
	return out, err
}

// GetHookRun implements the operation of that name.
func (o *Handler) GetHookRun(ctx context.Context, by operation.Caller, in operations.HookRunRef) (operations.HookRun, error) {
	r, err := o.rows.HookRun(ctx, in.ID)
	if err == nil {
		_, err = o.findHook(ctx, by, r.Hook)
	}
	if no := (*operation.Error)(nil); errors.Is(err, journal.ErrUnknown) || errors.As(err, &no) && no.Kind == operation.NotFound {
		return operations.HookRun{}, operation.Errorf(operation.NotFound, "there is no run %.64q; `chorus hook runs HOOK` lists them", in.ID)
	}
	return showRun(r, true), err
}

// FireHook implements the operation of that name.
func (o *Handler) FireHook(ctx context.Context, by operation.Caller, in operations.HookFiring) (operations.HookFired, error) {
	h, err := o.findHook(ctx, by, in.ID)
	if err != nil {
		return operations.HookFired{}, err
	}
	cause := by.Acting()
	run, err := hook.NewRun(h, "manual", cmp.Or(in.Key, id.New()), cause, nil)
	if stopped, ok := errors.AsType[*hook.StoppedError](err); ok {
		return operations.HookFired{}, operation.Errorf(operation.Conflict, "%s", stopped.Why)
	}
	if err != nil {
		return operations.HookFired{}, err
	}
	out, err := o.rows.TriggerHook(ctx, hook.Triggered{Hook: h, Run: run, Manual: true, At: o.app.Now()})
	switch {
	case err != nil:
		return operations.HookFired{}, err
	case out.Why != "" && !h.Enabled:
		return operations.HookFired{}, operation.Errorf(operation.Conflict, "the hook %s is disabled; enable it first: chorus hook edit %s --enabled", h.Name, h.ID)
	case out.Why != "":
		return operations.HookFired{}, operation.Errorf(operation.Conflict, "%s", out.Why)
	}
	o.hooksChanged()
	return operations.HookFired{Fired: h.ID, Run: out.Run, Status: hook.Running}, nil
}

// findHook finds a hook that the caller may see.
func (o *Handler) findHook(ctx context.Context, by operation.Caller, name string) (hook.Hook, error) {
	h, err := o.rows.Hook(ctx, name)
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return h, noHook(name)
	case err != nil:
		return h, err
	case !by.May(operation.Admin) && (by.Principal.ID == "" || h.Owner.String() != by.Principal.String()):
		return h, noHook(name)
	}
	return h, nil
}

// noHook is the error for a hook that does not exist or belongs to somebody else.
func noHook(name string) error {
	return operation.Errorf(operation.NotFound, "Hook '%.64s' not found; `chorus hook list` lists them", name)
}

func (o *Handler) showHook(_ context.Context, h hook.Hook) operations.Hook {
	shown := operations.Hook{ID: h.ID, Name: h.Name, ProjectID: h.Project, Enabled: h.Enabled, Prompt: h.Template, Cooldown: int(h.Cooldown / time.Second), Model: h.Model,
		BudgetUSD: float64(h.Budget) / 1e9, Owner: h.Owner.String(), OwnerName: h.Owner.Label(), Agent: h.Agent, Workspace: h.Dir, LastRunAt: h.LastAt, Passed: h.Passed, PassedWhy: h.PassedWhy,
		CreatedAt: h.Created, UpdatedAt: h.Updated, Starts: h.Trigger.String(), Approved: h.Approved == h.Digest() || h.Enabled && h.Approved == ""}
	shown.Trigger = plainJSON(h.Trigger)
	if len(h.Steps) > 0 {
		shown.Steps = plainJSON(h.Steps)
	}
	if len(h.Actions) > 0 {
		shown.Actions = plainJSON(h.Actions)
	}
	if h.Enabled {
		shown.Due = h.Due
	}
	if h.Trigger.Type == hook.Webhook {
		shown.Webhook = "/hooks/in/" + h.ID
	}
	return shown
}

// plainJSON encodes JSON without escaping < > and &, because people read commands in it.
func plainJSON(value any) json.RawMessage {
	out, _ := text.JSON(value) // text and numbers always encode
	return out
}

// showRun describes a run; whole: with all details.
func showRun(r hook.Run, whole bool) operations.HookRun {
	shown := operations.HookRun{ID: r.ID, HookID: r.Hook, Reason: r.Reason, Status: r.State, Why: r.Why, Prompt: r.Prompt, Response: r.Answer, Tokens: r.Tokens, CostUSD: float64(r.Cost) / 1e9,
		CreatedAt: r.Created, StartedAt: r.Started, EndedAt: r.Ended}
	if !r.Over() {
		shown.Stage = r.Stage
	}
	if r.State == hook.Skipped {
		shown.Skipped = r.Why
	}
	if r.Thread != "" {
		shown.SessionID = string(r.Thread)
	}
	if !whole {
		shown.Prompt, shown.Response = text.Clip(r.Prompt, shownWords), text.Clip(r.Answer, shownWords)
		return shown
	}
	shown.Event = r.Event
	if len(r.Results) > 0 {
		shown.Steps = plainJSON(r.Results)
	}
	if len(r.Done) > 0 {
		shown.Actions = plainJSON(r.Done)
	}
	return shown
}

// hooksChanged wakes whoever runs hooks, in this process or, if this one runs none, in another.
func (o *Handler) hooksChanged() {
	o.Changed()
	if o.sessions.IsGuest() {
		o.sessions.Engine.NotifyPeers(runner.ChangedElsewhere)
	}
}

// hookOperations are the operations that hooks may call, by their names as tools.
func hookOperations() (names []string) {
	may := operation.Caller{Scopes: []operation.Scope{operation.Read, operation.Chat}}
	for _, d := range operations.All().All() {
		if d.Tool != "" && d.Shape == operation.Unary && (d.Scope == "" || may.May(d.Scope)) {
			names = append(names, d.Tool)
		}
	}
	slices.Sort(names)
	return names
}
