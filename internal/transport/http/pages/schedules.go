package pages

import (
	"errors"
	"net/http"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// scheduleForm is what somebody has typed, and how it is understood.
type scheduleForm struct {
	When, Text, Zone, Agent, Adapter, Channel string
	Spec                                      string
	Dates                                     []time.Time
	Wrong                                     string
}

// schedules lists schedules. A new one is shown with its next dates before it is saved.
func (p *Pages) schedules(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operations.ListSchedules.Call(r.Context(), p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	q := r.URL.Query()
	form := scheduleForm{When: q.Get("when"), Text: q.Get("text"), Zone: q.Get("zone"), Agent: q.Get("agent"), Adapter: q.Get("adapter"), Channel: q.Get("channel")}
	if form.When != "" {
		preview, err := operations.PreviewSchedule.Call(r.Context(), p.Executor, by, operations.ScheduleTimes{When: form.When, Zone: form.Zone})
		if invalid := (*operation.Error)(nil); errors.As(err, &invalid) && invalid.Kind == operation.Invalid {
			form.Wrong = invalid.Error()
		} else if err != nil {
			return err
		}
		form.Spec, form.Dates = preview.Spec, preview.Next
	}
	return p.render(w, http.StatusOK, "schedules.html", map[string]any{"Layout": p.layout(r, by, "Schedules"), "List": list, "Form": form, "May": by.May(operation.Chat)})
}

// schedule shows one with its next dates and past runs.
func (p *Pages) schedule(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	s, err := operations.GetSchedule.Call(r.Context(), p.Executor, by, operations.ScheduleRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "schedule.html", map[string]any{"Layout": p.layout(r, by, "Schedule"), "S": s, "May": by.May(operation.Chat)})
}

func (p *Pages) addSchedule(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	_, err := operations.AddSchedule.Call(r.Context(), p.Executor, by, operations.NewSchedule{When: r.PostFormValue("when"), Text: r.PostFormValue("text"),
		Zone: r.PostFormValue("zone"), Agent: r.PostFormValue("agent"), Adapter: r.PostFormValue("adapter"), Channel: r.PostFormValue("channel"), Key: r.PostFormValue("key")})
	if err != nil {
		return err
	}
	return finishForm(w, r, "/schedules", "added")
}

// changeSchedule pauses, resumes or removes one.
func (p *Pages) changeSchedule(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	ref, err := operations.ScheduleRef{ID: r.PathValue("id")}, error(nil)
	back := "/schedules/" + ref.ID
	switch do := r.PostFormValue("do"); do {
	case "pause":
		_, err = operations.PauseSchedule.Call(r.Context(), p.Executor, by, ref)
	case "resume":
		_, err = operations.ResumeSchedule.Call(r.Context(), p.Executor, by, ref)
	case "remove":
		back = "/schedules"
		_, err = operations.RemoveSchedule.Call(r.Context(), p.Executor, by, ref)
	default:
		err = operation.Errorf(operation.Invalid, "a schedule can be paused, resumed or removed, not %.20q", do)
	}
	if err != nil {
		return err
	}
	return finishForm(w, r, back, "done")
}
