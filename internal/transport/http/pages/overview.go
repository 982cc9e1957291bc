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
	return p.render(w, http.StatusOK, "overview.html", map[string]any{"Layout": p.layout(r, by, "Overview"), "O": o, "Names": p.names(r.Context(), by), "May": by.May(operation.Chat), "Suggestions": suggestions()})
}

// suggestion is a first message that works on the sample project, with any model.
type suggestion struct{ Say, Shows string }

func suggestions() []suggestion {
	return []suggestion{
		{"Fix the failing test", "It runs the tests, finds the bug, fixes it and tests again. You are asked before each command."},
		{"Explain this project", "It lists the files and reads the README."},
		{"Search for TODO", "It searches all files."},
		{"Try something dangerous", "It tries to remove your home folder and is refused."},
	}
}

func (p *Pages) approvals(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	which := cmp.Or(r.URL.Query().Get("state"), "pending")
	list, err := operations.ListApprovals.Call(r.Context(), p.Executor, by, operations.ApprovalQuery{State: which, Cursor: r.URL.Query().Get("cursor"), Limit: 50})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "approvals.html", map[string]any{"Layout": p.layout(r, by, "Approvals"), "List": list, "State": which, "Names": p.names(r.Context(), by), "Answer": by.May(operation.Approve), "Wrong": map[string]string(nil),
		"View": view{Split: splitDiffs(w, r), State: which}})
}
