package pages

import (
	"net/http"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// tailLines is how much of its output the page of a process shows.
const tailLines = 200

// processes lists what agents left running.
func (p *Pages) processes(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operations.ListProcesses.Call(r.Context(), p.Executor, by, operations.ProcessQuery{})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "processes.html", map[string]any{"Layout": p.layout(r, by, "Processes"), "List": list})
}

// process shows one with the end of its output, and anew every two seconds while it runs.
func (p *Pages) process(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	one, err := operations.GetProcess.Call(r.Context(), p.Executor, by, operations.ProcessRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	output, err := operations.ProcessLogs.Call(r.Context(), p.Executor, by, operations.ProcessLogQuery{ID: one.ID, Lines: tailLines})
	if err != nil {
		return err
	}
	runs := one.EndedAt.IsZero()
	if runs {
		w.Header().Set("Refresh", "2")
	}
	return p.render(w, http.StatusOK, "process.html", map[string]any{"Layout": p.layout(r, by, "Process"), "P": one, "Output": output, "Runs": runs, "May": by.May(operation.Chat)})
}

func (p *Pages) killProcess(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	id := r.PathValue("id")
	if _, err := operations.KillProcess.Call(r.Context(), p.Executor, by, operations.ProcessRef{ID: id}); err != nil {
		return err
	}
	return finishForm(w, r, "/processes/"+id, "done")
}
