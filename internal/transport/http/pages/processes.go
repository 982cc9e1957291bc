package pages

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// tailLines and tailBytes limit the output that the page of a process shows at first.
const (
	tailLines = 200
	tailBytes = 64 << 10
)

// processes lists the background commands of agents.
func (p *Pages) processes(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operations.ListProcesses.Call(r.Context(), p.Executor, by, operations.ProcessQuery{})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "processes.html", map[string]any{"Layout": p.layout(r, by, "Processes"), "List": list})
}

// process shows one with the end of its output; processLive sends new output.
func (p *Pages) process(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	one, err := operations.GetProcess.Call(r.Context(), p.Executor, by, operations.ProcessRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	output, err := p.lastOutput(r.Context(), by, one.ID)
	if err != nil {
		return err
	}
	frame := p.layout(r, by, "Process")
	if running(one.Status) {
		frame.Script = "process.js"
	}
	data := processData(one, by)
	form := hooksForm{ID: one.ID, Say: r.URL.Query().Get("say")}
	if form.Say != "" {
		if err := p.understand(r.Context(), by, &form); err != nil {
			return err
		}
	}
	data["Layout"], data["Output"], data["Form"] = frame, output, form
	return p.render(w, http.StatusOK, "process.html", data)
}

func processData(one operations.Process, by operation.Caller) map[string]any {
	return map[string]any{"P": one, "Runs": running(one.Status), "May": by.May(operation.Chat)}
}

func running(status string) bool { return status == "starting" || status == "running" }

// lastOutput returns the last complete lines of output, and the exact position to continue from.
func (p *Pages) lastOutput(ctx context.Context, by operation.Caller, id string) (operations.ProcessOutput, error) {
	end, err := operations.ProcessLogs.Call(ctx, p.Executor, by, operations.ProcessLogQuery{ID: id, Lines: 1})
	if err != nil {
		return end, err
	}
	out, err := operations.ProcessLogs.Call(ctx, p.Executor, by, operations.ProcessLogQuery{ID: id, From: max(end.Total-tailBytes, 0) + 1, Bytes: tailBytes, Whole: true})
	if err != nil {
		return out, err
	}
	if out.From > 1 { // the first line may be incomplete
		_, out.Text, _ = strings.Cut(out.Text, "\n")
	}
	if lines := strings.SplitAfter(out.Text, "\n"); len(lines) > tailLines {
		out.Text = strings.Join(lines[len(lines)-tailLines:], "")
	}
	return out, nil
}

// hooksForm is an instruction that somebody typed, and how it is understood.
type hooksForm struct {
	ID, Say, Wrong string
	Says           []string
	Hooks          string // the same as JSON, so that exactly what is shown is added
}

// understand interprets the instruction of a form.
func (p *Pages) understand(ctx context.Context, by operation.Caller, form *hooksForm) error {
	list, err := operations.PreviewHooks.Call(ctx, p.Executor, by, operations.HookWords{Instructions: form.Say, ID: form.ID})
	if wrong := (*operation.Error)(nil); errors.As(err, &wrong) && (wrong.Kind == operation.Invalid || wrong.Kind == operation.Forbidden) {
		form.Wrong = wrong.Error()
		return nil
	} else if err != nil {
		return err
	}
	var spelled []map[string]any
	for _, h := range list.Items {
		form.Says = append(form.Says, h.Says)
		one := map[string]any{"on": h.On, "if": h.If, "pattern": h.Pattern, "after": h.After, "do": h.Do, "message": h.Message}
		for name, n := range map[string]*int{"maxFires": h.MaxFires, "interval": h.Interval, "delay": h.Delay} {
			if n != nil {
				one[name] = *n
			}
		}
		spelled = append(spelled, one)
	}
	data, err := json.Marshal(spelled)
	form.Hooks = string(data)
	return err
}

func (p *Pages) hookProcess(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	id := r.PathValue("id")
	if _, err := operations.HookProcess.Call(r.Context(), p.Executor, by, operations.NewProcessHooks{ID: id, Hooks: r.PostFormValue("hooks")}); err != nil {
		return err
	}
	return finishForm(w, r, "/processes/"+id, "added")
}

func (p *Pages) killProcess(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	id := r.PathValue("id")
	if _, err := operations.KillProcess.Call(r.Context(), p.Executor, by, operations.ProcessRef{ID: id}); err != nil {
		return err
	}
	return finishForm(w, r, "/processes/"+id, "done")
}
