package app

import (
	"context"

	"chorus/internal/command"
	"chorus/internal/doctor"
)

// Health implements command.House: what `chorus doctor` says, for a page.
func (o *orders) Health(ctx context.Context, by command.Caller) (command.List[command.Check], error) {
	out := command.List[command.Check]{Items: []command.Check{}}
	if err := need(by, command.Read); err != nil {
		return out, err
	}
	report := Examine(ctx, o.app.Options, Examination{Version: o.app.Version})
	hide := o.app.Redactor()
	for _, s := range report.Sections {
		for _, f := range s.Findings {
			state := string(f.Mark)
			if f.Mark == doctor.Note {
				state = string(doctor.OK) // nothing is wrong with it
			}
			out.Items = append(out.Items, command.Check{Section: s.Name, Name: f.Name, State: state, Detail: hide.Text(f.Detail), Fix: hide.Text(f.Fix)})
		}
	}
	return out, nil
}
