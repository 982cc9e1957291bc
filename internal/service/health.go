package service

import (
	"context"
	"sync"
	"time"

	"chorus/internal/doctor"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// Health carries out the operation of that name: what `chorus doctor` says, for a page.
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

// lookAgain is how old a report may be: looking tries sandboxes and opens files, and
// pages ask often.
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
			return report // it was cut short, and is nobody else's
		}
		e.report, e.at = report, time.Now()
	}
	return e.report
}
