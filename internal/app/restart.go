package app

import (
	"context"
	"errors"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// ErrRestart is what Serve ends with if the server should be restarted.
var ErrRestart = errors.New("the server should be started again")

// restarter restarts the server that this process is.
type restarter struct{ a *App }

var _ operations.Restarter = restarter{}

// restarted marks requests to restart: the run of an agent that asked for it
// continues afterwards and must not ask for it again.
const restarted = "restarted"

// keepRestarts is how long a request is remembered.
const keepRestarts = 24 * time.Hour

// Restart implements operations.Restarter: the server stops as it does on SIGTERM, and then starts again.
func (r restarter) Restart(ctx context.Context, by operation.Caller, in operations.RestartRequest) (operations.Restarting, error) {
	stop := r.a.stopServing.Load()
	if stop == nil {
		return operations.Restarting{}, operation.Errorf(operation.Conflict, "this process is not a server; name one with --server")
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
