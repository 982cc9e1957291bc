package pages

import (
	"net/http"
	"slices"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// doctor shows what is missing on this machine and how to get it. The checks take seconds, so the
// page is served at once and a script loads the results; without scripts ?wait=1 includes them.
func (p *Pages) doctor(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	data := map[string]any{"Layout": p.layout(r, by, "This machine")}
	if r.URL.Query().Get("wait") != "" {
		checks, err := operations.CheckHealth.Call(r.Context(), p.Executor, by, operation.None{})
		if err != nil {
			return err
		}
		data["Checks"] = checks.Items
	}
	return p.render(w, http.StatusOK, "doctor.html", data)
}

// checks renders the results as a fragment: all of them, or one section for the overview.
func (p *Pages) checks(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	checks, err := operations.CheckHealth.Call(r.Context(), p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	look, items := "checks", checks.Items
	if section := r.URL.Query().Get("section"); section != "" {
		look, items = "found", slices.DeleteFunc(slices.Clone(items), func(c operations.Check) bool { return c.Section != section })
	}
	return p.writeFragment(w, look, items)
}
