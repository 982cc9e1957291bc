package workcards

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/room/split"
	"chorus/internal/work"
	"chorus/internal/workview"
)

var _ connector.Commands = (*Cards)(nil)

// button is the button for an action. It contains the attempt that the person saw.
func button(t work.Task, a workview.Action) platform.Button {
	what := platform.PressTask
	switch {
	case a == workview.Edit:
		what = platform.PressEdit
	case a.Asks():
		what = platform.PressFeedback
	}
	style := platform.Plain
	switch a {
	case workview.Approve:
		style = platform.Yes
	case workview.Reject, workview.Stop, workview.Skip:
		style = platform.Danger
	}
	return platform.Button{Label: a.Label(), Value: platform.ButtonValue(what, string(a)+":"+t.ID+":"+strconv.Itoa(t.Attempt)), Style: style}
}

// List implements connector.Commands.
func (*Cards) List() []platform.Command { return nil }

// Invoke implements connector.Commands.
func (*Cards) Invoke(context.Context, platform.Invocation) (platform.Answer, bool) {
	return platform.Answer{}, false
}

// Complete implements connector.Commands.
func (*Cards) Complete(context.Context, platform.Invocation, string) ([]platform.Choice, bool) {
	return nil, false
}

// otherVersion is the answer to an unknown button.
const otherVersion = "This button is from another version of Chorus and no longer works."

func says(text string) platform.Answer { return platform.Answer{Text: text} }

// Press implements connector.Commands.
func (c *Cards) Press(ctx context.Context, p platform.Press) (platform.Answer, bool) {
	what, id, ok := platform.ReadButton(p.Value)
	if ok && what == platform.PressNote {
		return c.pressedNote(ctx, p, id), true
	}
	if !ok || what != platform.PressTask && what != platform.PressFeedback && what != platform.PressEdit {
		return platform.Answer{}, false
	}
	parts := strings.Split(id, ":")
	if len(parts) != 3 || !workview.Action(parts[0]).Known() {
		return says(otherVersion), true
	}
	return c.pressed(ctx, p, workview.Action(parts[0]), parts[1], parts[2]), true
}

// Fill implements connector.Fills: the form for changing a task contains its description.
func (c *Cards) Fill(ctx context.Context, p platform.Press, f platform.Form) (platform.Form, bool) {
	what, id, ok := platform.ReadButton(p.Value)
	parts := strings.Split(id, ":")
	if !ok || what != platform.PressEdit || len(parts) != 3 {
		return f, false
	}
	t, err := operations.GetTask.Call(ctx, c.Backend, c.o.Caller(p.By, p.In, p.Absent), operations.TaskRef{ID: parts[1]})
	switch {
	case err != nil: // somebody who may not see the task is told when they have written
	case split.Length(t.Description) > f.Max || c.Backend.Redact(t.Description) != t.Description:
		f.Hint = "Its text cannot be shown here. What you write takes its place."
	default:
		f.Value = t.Description
	}
	return f, true
}

// pressed runs a button's action if that is still possible.
func (c *Cards) pressed(ctx context.Context, p platform.Press, a workview.Action, id, attempt string) platform.Answer {
	if !a.Reads() && !p.Allowed.Write {
		return says("You may not write here, so you cannot do this here.")
	}
	by := c.o.Caller(p.By, p.In, p.Absent)
	// First ask the operation whether the person may see the task: about hidden tasks they are told nothing.
	if _, err := operations.GetTask.Call(ctx, c.Backend, by, operations.TaskRef{ID: id}); err != nil {
		return says(c.UserMessage(err))
	}
	t, err := c.o.Work.Task(ctx, id)
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return says("This task is not there any more.")
	case err != nil:
		return says(c.UserMessage(err))
	case !workview.Legal(t, a):
		c.refresh(ctx, t.ID)
		return says(fmt.Sprintf("Too late for that: the task %s.", workview.Words(t.State)))
	case strconv.Itoa(t.Attempt) != attempt && !a.Reads():
		c.refresh(ctx, t.ID)
		return says("The task has moved on since this was shown; look at it again.")
	}
	answer, err := c.act(ctx, by, a, t, strings.TrimSpace(p.Text))
	if err != nil {
		return says(c.UserMessage(err))
	}
	if !a.Reads() {
		c.wake()
	}
	return answer
}

// act runs the operation of an action.
func (c *Cards) act(ctx context.Context, by operation.Caller, a workview.Action, t work.Task, words string) (answer platform.Answer, err error) {
	ref := operations.TaskRef{ID: t.ID}
	plan := t.State == work.AwaitingPlanApproval
	switch a {
	case workview.Approve:
		if plan {
			_, err = operations.ApprovePlan.Call(ctx, c.Backend, by, ref)
			break
		}
		_, err = operations.ApproveTask.Call(ctx, c.Backend, by, ref)
	case workview.Stop:
		_, err = operations.StopTask.Call(ctx, c.Backend, by, ref)
	case workview.Restart:
		_, err = operations.RestartTask.Call(ctx, c.Backend, by, ref)
	case workview.Resolve:
		_, err = operations.ResolveConflict.Call(ctx, c.Backend, by, ref)
	case workview.Skip:
		_, err = operations.SkipTask.Call(ctx, c.Backend, by, ref)
	case workview.Edit:
		_, err = operations.EditTask.Call(ctx, c.Backend, by, operations.TaskChanges{ID: t.ID, Description: words})
		answer = says("The next attempt starts from this text.")
	case workview.Reject, workview.Reopen:
		said := operations.TaskFeedback{ID: t.ID, Feedback: words}
		if plan {
			_, err = operations.RejectPlan.Call(ctx, c.Backend, by, said)
			break
		}
		_, err = operations.ReopenTask.Call(ctx, c.Backend, by, said)
	case workview.Diff:
		return c.diff(ctx, by, ref)
	case workview.Error:
		return c.trouble(ctx, by, ref)
	}
	return answer, err
}

func (c *Cards) diff(ctx context.Context, by operation.Caller, ref operations.TaskRef) (platform.Answer, error) {
	d, err := operations.GetTaskDiff.Call(ctx, c.Backend, by, operations.TaskDiffQuery{ID: ref.ID})
	if err != nil {
		return platform.Answer{}, err
	}
	if d.Diff == "" {
		return says("It changed nothing."), nil
	}
	text := fmt.Sprintf("What `%s` changed on branch `%s`: %s", ref.ID, d.Branch, strings.Join(d.Files[:min(len(d.Files), 20)], ", "))
	return platform.Answer{Text: text, File: platform.File{Name: ref.ID + ".diff", Text: c.Backend.Redact(d.Diff)}}, nil
}

func (c *Cards) trouble(ctx context.Context, by operation.Caller, ref operations.TaskRef) (platform.Answer, error) {
	e, err := operations.GetAgentError.Call(ctx, c.Backend, by, ref)
	if err != nil {
		return platform.Answer{}, err
	}
	var b strings.Builder
	for _, line := range []struct{ name, text string }{{"", e.Type}, {"", e.Error}, {"What to do: ", e.Fix}, {"Tries: ", e.Retries}, {"What it said last: ", e.Summary}, {"", e.Message}} {
		if line.text != "" {
			fmt.Fprintf(&b, "%s%s\n", line.name, line.text)
		}
	}
	return says(strings.TrimSpace(b.String())), nil
}
