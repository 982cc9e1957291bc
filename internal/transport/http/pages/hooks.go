package pages

import (
	"maps"
	"net/http"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// hooks lists hooks.
func (p *Pages) hooks(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operation.CallWhole(r.Context(), operations.ListHooks, p.Executor, by, operations.HookQuery{})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "hooks.html", map[string]any{"Layout": p.layout(r, by, "Hooks"), "List": list, "May": by.May(operation.Chat)})
}

// maxHookRuns is how many runs of a hook its page shows.
const maxHookRuns = 50

// hook shows one with its last runs.
func (p *Pages) hook(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	return p.showHook(w, r, by, r.PathValue("id"), nil)
}

// showHook shows a hook with its last runs, and with what is shown only once.
func (p *Pages) showHook(w http.ResponseWriter, r *http.Request, by operation.Caller, id string, more map[string]any) error {
	h, err := operations.GetHook.Call(r.Context(), p.Executor, by, operations.HookRef{ID: id})
	if err != nil {
		return err
	}
	runs, err := operations.ListHookRuns.Call(r.Context(), p.Executor, by, operations.HookRunQuery{ID: h.ID, Limit: maxHookRuns})
	if err != nil {
		return err
	}
	data := map[string]any{"Layout": p.layout(r, by, h.Name), "H": h, "Runs": runs.Items, "May": by.May(operation.Chat)}
	maps.Copy(data, more)
	return p.render(w, http.StatusOK, "hook.html", data)
}

// changeHook turns a hook on or off, approves its steps, tests it, runs it now, gives it a new secret or deletes it.
func (p *Pages) changeHook(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
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
	case "test":
		test, err := operations.TestHook.Call(ctx, p.Executor, by, operations.HookRef{ID: id})
		if err != nil {
			return err
		}
		return p.showHook(w, r, by, id, map[string]any{"Test": test, "TestSteps": resultsOf(test.Steps)})
	case "secret":
		changed, err := operations.EditHook.Call(ctx, p.Executor, by, operations.HookChanges{ID: id, NewSecret: true})
		if err != nil {
			return err
		}
		return p.showHook(w, r, by, id, map[string]any{"Secret": changed.Secret})
	case "delete":
		_, err = operations.DeleteHook.Call(ctx, p.Executor, by, operations.HookRef{ID: id})
		to = "/hooks"
	default:
		err = operation.Errorf(operation.Invalid, "a hook can be enabled, disabled, approved, tested, fired or deleted, not %.20q", do)
	}
	if err != nil {
		return err
	}
	return finishForm(w, r, to, "done")
}
