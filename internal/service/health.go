package service

import (
	"context"
	"sync"
	"time"

	"chorus/internal/doctor"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// Health implements the operation of that name: the results of `chorus doctor`, for a page.
func (o *Handler) Health(ctx context.Context, _ operation.Caller, _ operation.None) (operation.List[operations.Check], error) {
	out := operation.List[operations.Check]{Items: []operations.Check{}}
	report := o.examined(ctx)
	hide := o.app.Logs.Redactor()
	for _, s := range report.Sections {
		for _, f := range s.Findings {
			state := string(f.Mark)
			if f.Mark == doctor.Note {
				state = string(doctor.OK) // nothing is wrong with it
			}
			out.Items = append(out.Items, operations.Check{Section: s.Name, Name: f.Name, State: state, Detail: hide.Text(f.Detail), Fix: hide.Text(f.Fix)})
		}
	}
	return out, nil
}

// lookAgain is how long a report is reused: the checks start sandboxes and open files, and pages ask often.
const lookAgain = 20 * time.Second

// examination is the last report.
type examination struct {
	mu     sync.Mutex
	at     time.Time
	report doctor.Report
}

func (o *Handler) examined(ctx context.Context) doctor.Report {
	e := &o.last
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.at) > lookAgain {
		report := o.app.Examine(ctx)
		if ctx.Err() != nil {
			return report // it was cut short, so it is not reused
		}
		e.report, e.at = report, time.Now()
	}
	return e.report
}
