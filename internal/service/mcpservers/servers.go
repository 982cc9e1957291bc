// Package mcpservers implements the operations on MCP servers: listing, adding and testing them, and logging in to them.
package mcpservers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/service"
)

// Handler implements the operations on MCP servers.
type Handler struct{ app *service.Service }

// New makes a handler.
func New(app *service.Service) *Handler { return &Handler{app} }

var _ operations.MCPServers = (*Handler)(nil)

// folder checks the folder whose servers are meant; "": none.
func folder(path string) (string, error) {
	switch {
	case path == "":
		return "", nil
	case !filepath.IsAbs(path):
		return "", operation.InvalidField("workspacePath", "%.200q is not an absolute path", path)
	case !runsetup.IsDir(path):
		return "", operation.InvalidField("workspacePath", "there is no directory %.200s", path)
	}
	return filepath.Clean(path), nil
}

// toError classifies a failure.
func toError(err error) error {
	var unknown *runsetup.UnknownServer
	var state *runsetup.ServerState
	switch {
	case errors.As(err, &unknown):
		return operation.Errorf(operation.NotFound, "%s", unknown)
	case errors.As(err, &state):
		return operation.Errorf(operation.Conflict, "%s", state)
	}
	return err
}

func show(s runsetup.ServerInfo) operations.MCPServer {
	return operations.MCPServer{Name: s.Name, Where: s.Where, From: s.From, State: s.State, Status: string(s.Seen.State), Error: s.Seen.Why, SeenAt: s.Seen.At,
		Tools: s.Seen.Tools, Prompts: s.Seen.Prompts, Resources: s.Seen.Resources, Lock: s.Lock, LockID: s.LockID, Added: s.Added}
}

// ListMCPServers implements the operation of that name.
func (o *Handler) ListMCPServers(_ context.Context, _ operation.Caller, in operations.MCPServerQuery) (out operation.List[operations.MCPServer], err error) {
	dir, err := folder(in.Workspace)
	if err != nil {
		return out, err
	}
	list, err := o.app.Setup.Servers(dir)
	for _, s := range list {
		out.Items = append(out.Items, show(s))
	}
	return out, err
}

// AddMCPServer implements the operation of that name.
func (o *Handler) AddMCPServer(ctx context.Context, by operation.Caller, in operations.NewMCPServer) (out operations.MCPServer, err error) {
	dir, err := folder(in.Workspace)
	if err != nil {
		return out, err
	}
	s := runsetup.NewServer{Command: in.Command, Args: in.Args, Type: in.Type, URL: in.URL}
	if s.Env, err = pairs("env", in.Env); err != nil {
		return out, err
	}
	if s.Headers, err = pairs("headers", in.Headers); err != nil {
		return out, err
	}
	if err := o.app.Setup.AddServer(dir, in.Name, s); err != nil {
		return out, toError(err)
	}
	list, err := o.app.Setup.Servers(dir)
	if err != nil {
		return out, err
	}
	for _, one := range list {
		if one.Name == in.Name {
			out = show(one)
		}
	}
	return out, o.app.Gate.RecordDecision(ctx, by.Principal, "mcp add", in.Name+" ("+out.Where+")")
}

// pairs parses NAME=VALUE.
func pairs(field string, list []string) (map[string]string, error) {
	var out map[string]string
	for _, one := range list {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, operation.InvalidField(field, "%.40q is not NAME=VALUE", one)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = value
	}
	return out, nil
}

// TestMCPServer implements the operation of that name.
func (o *Handler) TestMCPServer(ctx context.Context, _ operation.Caller, in operations.MCPServerRef) (out operations.MCPServerReport, err error) {
	dir, err := folder(in.Workspace)
	if err != nil {
		return out, err
	}
	if dir == "" { // a session without a folder also has its own
		if dir, err = os.MkdirTemp("", "chorus-mcp-"); err != nil {
			return out, err
		}
		defer os.RemoveAll(dir)
	}
	report, err := o.app.Setup.TestServer(ctx, runsetup.SessionOptions{Dir: dir}, in.Name)
	if err != nil {
		return out, toError(err)
	}
	return operations.MCPServerReport{Name: report.Name, State: report.State, Why: report.Why, Tools: report.Tools, Prompts: report.Prompts,
		Resources: report.Resources, Instructions: report.Instructions}, nil
}

// RemoveMCPServer implements the operation of that name.
func (o *Handler) RemoveMCPServer(ctx context.Context, by operation.Caller, in operations.MCPServerRef) (operations.MCPServerName, error) {
	return o.change(ctx, by, in, "mcp remove", o.app.Setup.RemoveServer)
}

// LogoutMCPServer implements the operation of that name.
func (o *Handler) LogoutMCPServer(ctx context.Context, by operation.Caller, in operations.MCPServerRef) (operations.MCPServerName, error) {
	return o.change(ctx, by, in, "mcp logout", o.app.Setup.LogOut)
}

func (o *Handler) change(ctx context.Context, by operation.Caller, in operations.MCPServerRef, action string, do func(dir, name string) error) (operations.MCPServerName, error) {
	out := operations.MCPServerName{Name: in.Name}
	dir, err := folder(in.Workspace)
	if err != nil {
		return out, err
	}
	if err := do(dir, in.Name); err != nil {
		return out, toError(err)
	}
	return out, o.app.Gate.RecordDecision(ctx, by.Principal, action, in.Name)
}
