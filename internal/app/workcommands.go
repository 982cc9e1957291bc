package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/workservice"
)

// projectTools uses the tools of agents in the repositories of projects, for people and agents who ask for it by a command.
type projectTools struct{ a *App }

// call is a call of a tool for a caller. That they asked for it is the yes of what would be asked for: where an agent asks in their
// name, its own call was judged before. What the rules deny stays denied.
func (p projectTools) call(by operation.Caller, at workservice.Folder, name string, args map[string]any) (runsetup.UnattendedCall, error) {
	text, err := json.Marshal(args)
	return runsetup.UnattendedCall{Thread: journal.Thread{ID: at.Thread, Agent: at.Agent, Place: at.Thread.Place(), Owner: by.Principal, Dir: at.Dir},
		Principal: by.Acting(), ID: "command-" + id.New(), Name: name, Args: text, Approved: true}, err
}

// refusal makes an error for people of a call that was not made.
func refusal(err error) error {
	var denied *runsetup.DeniedError
	if errors.As(err, &denied) {
		return operation.Errorf(operation.Forbidden, "%s", denied.Why)
	}
	return err
}

// MayRead implements workservice.Tools.
func (p projectTools) MayRead(ctx context.Context, by operation.Caller, at workservice.Folder) error {
	call, err := p.call(by, at, "read", map[string]any{"path": at.Path})
	if err != nil {
		return err
	}
	return refusal(p.a.Setup.JudgeUnattended(ctx, call))
}

// Use implements workservice.Tools.
func (p projectTools) Use(ctx context.Context, by operation.Caller, at workservice.Folder, name string, args map[string]any) (workservice.Used, error) {
	call, err := p.call(by, at, name, args)
	if err != nil {
		return workservice.Used{}, err
	}
	var used workservice.Used
	call.Streams = func(stdout, stderr string) { used.Stdout, used.Stderr = stdout, stderr }
	res, err := p.a.Setup.CallUnattended(ctx, call)
	used.Text, used.Exit, used.Failed = res.Blocks.Text(), res.Exit, res.Failed
	return used, refusal(err)
}

// ErrRestart is what Serve ends with when the server is to be started again.
var ErrRestart = errors.New("the server is to be started again")

// restarter restarts the server that this process is.
type restarter struct{ a *App }

var _ operations.Restarter = restarter{}

// restarted marks requests to restart: the run of an agent that asked for it goes on afterwards, and must not ask for it again.
const restarted = "restarted"

// keepRestarts is how long a request is known.
const keepRestarts = 24 * time.Hour

// Restart implements operations.Restarter: the server stops as it does on SIGTERM, and then begins anew.
func (r restarter) Restart(ctx context.Context, by operation.Caller, in operations.RestartRequest) (operations.Restarting, error) {
	stop := r.a.stopServing.Load()
	if stop == nil {
		return operations.Restarting{}, operation.Errorf(operation.Conflict, "this process is no server; name the one that is meant with --server")
	}
	out := operations.Restarting{Status: "restarting", Message: "The server restarts; what is being answered is finished first."}
	if in.Key != "" {
		first, err := r.a.DB.RememberOnce(ctx, restarted, by.Principal.String()+"/"+in.Key, nil, keepRestarts)
		if err != nil || !first {
			return out, err
		}
	}
	if err := r.a.Service.Handler().Record(ctx, by, chat.DefaultAgent, "system restart", in.Reason); err != nil {
		return out, err
	}
	r.a.Log.Info("restarting", "component", "http", "event", "restarting", "by", by.Principal.String(), "reason", in.Reason)
	(*stop)(ErrRestart)
	return out, nil
}
