package pages

import (
	"cmp"
	"net/http"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// overview is the start page: active runs, pending approvals, costs.
func (p *Pages) overview(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	o, err := operations.GetOverview.Call(r.Context(), p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "overview.html", map[string]any{"Layout": p.layout(r, by, "Overview"), "O": o, "May": by.May(operation.Chat)})
}

func (p *Pages) approvals(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	which := cmp.Or(r.URL.Query().Get("state"), "pending")
	list, err := operations.ListApprovals.Call(r.Context(), p.Executor, by, operations.ApprovalQuery{State: which, Cursor: r.URL.Query().Get("cursor"), Limit: 50})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "approvals.html", map[string]any{"Layout": p.layout(r, by, "Approvals"), "List": list, "State": which, "Names": p.names(r.Context(), by), "Answer": by.May(operation.Approve)})
}
