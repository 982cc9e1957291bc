// Package projecttools uses the tools of agents in the repositories of projects.
package projecttools

import (
	"context"
	"encoding/json"
	"errors"

	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/runsetup"
	"chorus/internal/workservice"
)

// Tools uses the tools of agents in the repositories of projects, for people and agents who ask for it by a command.
type Tools struct{ Setup *runsetup.Setup }

var _ workservice.Tools = Tools{}

// call is a call of a tool for a caller. That they asked for it is the yes of what would be asked for: where an agent asks in their
// name, its own call was judged before. What the rules deny stays denied.
func (t Tools) call(by operation.Caller, at workservice.Folder, name string, args map[string]any) (runsetup.UnattendedCall, error) {
	text, err := json.Marshal(args)
	return runsetup.UnattendedCall{Thread: journal.Thread{ID: at.Thread, Agent: at.Agent, Place: at.Thread.Place(), Owner: by.Principal, Dir: at.Dir},
		Principal: by.Acting(), ID: "command-" + id.New(), Name: name, Args: text, Approved: true}, err
}

// refusal makes an error for people of a call that was not made.
func refusal(err error) error {
	if denied, ok := errors.AsType[*runsetup.DeniedError](err); ok {
		return operation.Errorf(operation.Forbidden, "%s", denied.Why)
	}
	return err
}

// MayRead implements workservice.Tools.
func (t Tools) MayRead(ctx context.Context, by operation.Caller, at workservice.Folder) error {
	call, err := t.call(by, at, "read", map[string]any{"path": at.Path})
	if err != nil {
		return err
	}
	return refusal(t.Setup.JudgeUnattended(ctx, call))
}

// Use implements workservice.Tools.
func (t Tools) Use(ctx context.Context, by operation.Caller, at workservice.Folder, name string, args map[string]any) (workservice.Used, error) {
	call, err := t.call(by, at, name, args)
	if err != nil {
		return workservice.Used{}, err
	}
	var used workservice.Used
	call.Streams = func(stdout, stderr string) { used.Stdout, used.Stderr = stdout, stderr }
	res, err := t.Setup.CallUnattended(ctx, call)
	used.Text, used.Exit, used.Failed = res.Blocks.Text(), res.Exit, res.Failed
	return used, refusal(err)
}
