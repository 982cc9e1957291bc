package pages

import (
	"net/http"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// hooks lists what acts by itself when something happens.
func (p *Pages) hooks(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operations.ListHooks.Call(r.Context(), p.Executor, by, operations.HookQuery{})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "hooks.html", map[string]any{"Layout": p.layout(r, by, "Hooks"), "List": list.Items})
}

// maxHookRuns is how many runs of a hook its page shows.
const maxHookRuns = 50

// hook shows one with its last runs.
func (p *Pages) hook(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	h, err := operations.GetHook.Call(r.Context(), p.Executor, by, operations.HookRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	runs, err := operations.ListHookRuns.Call(r.Context(), p.Executor, by, operations.HookRunQuery{ID: h.ID, Limit: maxHookRuns})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "hook.html", map[string]any{"Layout": p.layout(r, by, h.Name), "H": h, "Runs": runs.Items, "May": by.May(operation.Chat)})
}

// changeHook switches a hook on or off, says yes to its steps, runs it now or deletes it.
func (p *Pages) changeHook(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	id, on, off := r.PathValue("id"), true, false
	ctx, to := r.Context(), "/hooks/"+r.PathValue("id")
	var err error
	switch do := r.PostFormValue("do"); do {
	case "enable":
		_, err = operations.EditHook.Call(ctx, p.Executor, by, operations.HookChanges{ID: id, Enabled: &on})
	case "disable":
		_, err = operations.EditHook.Call(ctx, p.Executor, by, operations.HookChanges{ID: id, Enabled: &off})
	case "approve":
		_, err = operations.EditHook.Call(ctx, p.Executor, by, operations.HookChanges{ID: id, Approve: true})
	case "fire":
		_, err = operations.FireHook.Call(ctx, p.Executor, by, operations.HookFiring{ID: id})
	case "delete":
		_, err = operations.DeleteHook.Call(ctx, p.Executor, by, operations.HookRef{ID: id})
		to = "/hooks"
	default:
		err = operation.Errorf(operation.Invalid, "a hook can be enabled, disabled, approved, fired or deleted, not %.20q", do)
	}
	if err != nil {
		return err
	}
	return finishForm(w, r, to, "done")
}
