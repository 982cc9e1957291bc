package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/command"
	"chorus/internal/transport/repl/remote"
	"chorus/internal/usage"
)

// farQuestions are the approvals of a server.
func farQuestions(ctx context.Context, service command.Service, all bool) ([]approval.Approval, error) {
	state := "pending"
	if all {
		state = "all"
	}
	list, err := whole(0, func(cursor string) (command.List[command.Approval], error) {
		return service.Approvals(ctx, command.Caller{}, command.ApprovalQuery{State: state, Cursor: cursor, Limit: 200})
	})
	out := []approval.Approval{}
	for _, a := range list {
		out = append(out, remote.Question(a))
	}
	return out, err
}

// farQuestion finds one by a beginning of its id; "": the only one that waits.
func farQuestion(ctx context.Context, service command.Service, name string) (approval.Approval, error) {
	for _, all := range []bool{false, true} {
		if all && name == "" {
			break
		}
		list, err := farQuestions(ctx, service, all)
		if err != nil {
			return approval.Approval{}, err
		}
		var found []approval.Approval
		for _, a := range list {
			if strings.HasPrefix(a.ID, strings.ToLower(name)) || a.Call.ID == name {
				found = append(found, a)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return approval.Approval{}, &usage.Error{Err: fmt.Errorf("%d questions are meant; `chorus approvals list` shows them, give more of the id", len(found))}
		}
	}
	if name == "" {
		return approval.Approval{}, errors.New("nothing waits for an answer")
	}
	return approval.Approval{}, fmt.Errorf("there is no approval %q; `chorus approvals list` shows those that wait", name)
}

func (c *cli) farApprovals(ctx context.Context, all bool) error {
	return c.at(func(service command.Service) error {
		list, err := farQuestions(ctx, service, all)
		if err != nil {
			return err
		}
		return c.printApprovals(list)
	})
}

func (c *cli) farApproval(ctx context.Context, name string) error {
	return c.at(func(service command.Service) error {
		x, err := farQuestion(ctx, service, name)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(approvalAsJSON(x))
		}
		showApproval(c.out(), x)
		return nil
	})
}

func (c *cli) farAnswer(ctx context.Context, name string, ok bool, note string) error {
	return c.at(func(service command.Service) error {
		x, err := farQuestion(ctx, service, name)
		if err != nil {
			return err
		}
		done, err := service.Answer(ctx, command.Caller{}, x.ID, command.Verdict{Approved: ok, Note: note})
		if err != nil {
			return err
		}
		x = remote.Question(done)
		switch {
		case c.json:
			return c.printJSON(approvalAsJSON(x))
		case x.State == approval.Open:
			fmt.Fprintf(c.out(), "noted; another person must say yes too: %s\n", what(x))
		default:
			fmt.Fprintf(c.out(), "%s: %s\n", x.State, what(x))
		}
		return nil
	})
}
