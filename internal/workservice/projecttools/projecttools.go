// Package projecttools uses agents' tools in the repositories of projects.
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

// Tools uses agents' tools in the repositories of projects, on request of people and agents.
type Tools struct{ Setup *runsetup.Setup }

var _ workservice.Tools = Tools{}

// call returns a tool call on behalf of a caller. Their request counts as approval; if an agent
// requests it in their name, its own call was judged before. What the rules deny stays denied.
func (t Tools) call(by operation.Caller, at workservice.Folder, name string, args map[string]any) (runsetup.UnattendedCall, error) {
	text, err := json.Marshal(args)
	return runsetup.UnattendedCall{Thread: journal.Thread{ID: at.Thread, Agent: at.Agent, Place: at.Thread.Place(), Owner: by.Principal, Dir: at.Dir},
		Principal: by.Acting(), ID: "command-" + id.New(), Name: name, Args: text, Approved: true}, err
}

// refusal turns a call that was not made into an error for people.
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
