package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"chorus/internal/client"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/runsetup"
	"chorus/internal/transport/acp"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl"
	"chorus/internal/transport/repl/remote"
)

// serverConnection carries out operations on a server. The person may get another token while an editor runs, so the
// connection can be made anew; sessions that are open go on with it.
type serverConnection struct {
	dial func() (*client.Client, error)

	mu sync.Mutex
	at *client.Client // nil: there is no token yet
}

var _ operation.Executor = (*serverConnection)(nil)

// current is the connection, made at first use. An error says that the person must sign in.
func (c *serverConnection) current() (*client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		at, err := c.dial()
		if err != nil {
			return nil, &acp.AuthError{Text: err.Error()}
		}
		c.at = at
	}
	return c.at, nil
}

// renew has the next operation use the token as it is then.
func (c *serverConnection) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != nil {
		c.at.Close()
		c.at = nil
	}
}

// Close ends the connection.
func (c *serverConnection) Close() { c.renew() }

// Execute implements operation.Executor.
func (c *serverConnection) Execute(ctx context.Context, by operation.Caller, d *operation.Definition, in any) (any, error) {
	at, err := c.current()
	if err != nil {
		return nil, err
	}
	out, err := at.Execute(ctx, by, d, in)
	return out, mustSignIn(err)
}

// Follow implements operation.Executor.
func (c *serverConnection) Follow(ctx context.Context, by operation.Caller, d *operation.Definition, in any) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		at, err := c.current()
		if err != nil {
			yield(nil, err)
			return
		}
		for item, err := range at.Follow(ctx, by, d, in) {
			if !yield(item, mustSignIn(err)) || err != nil {
				return
			}
		}
	}
}

// mustSignIn makes of a token that the server does not know a request to sign in.
func mustSignIn(err error) error {
	if operation.KindOf(err) == operation.Unsigned {
		return &acp.AuthError{Text: err.Error()}
	}
	return err
}

// remoteEditor has the sessions of a server for an editor.
type remoteEditor struct {
	c       *program
	at      *serverConnection
	options runsetup.SessionOptions
}

var (
	_ acp.Host          = (*remoteEditor)(nil)
	_ acp.Authenticator = (*remoteEditor)(nil)
)

func (e *remoteEditor) to() cli.Connection {
	return cli.Connection{Executor: e.at, Server: e.c.server.url, Close: func() error { return nil }}
}

// signIn is the only way to be known to a server.
const signIn = "token"

// AuthMethods implements acp.Authenticator.
func (e *remoteEditor) AuthMethods() []acp.Choice {
	where := "the variable CHORUS_TOKEN of the editor's configuration of this agent, or a file that --token-file names"
	if e.c.server.tokenFile != "" {
		where = "the file " + e.c.server.tokenFile
	}
	return []acp.Choice{{ID: signIn, Name: "Token of " + e.c.server.url, About: "Put a token of the server into " + where + ", and try again; `chorus token create --scopes chat,approve` on the server makes one."}}
}

// Authenticate implements acp.Authenticator: the token is read anew and tried.
func (e *remoteEditor) Authenticate(ctx context.Context, _ string) error {
	e.at.renew()
	_, err := operations.ListSessions.Call(ctx, e.at, operation.Caller{}, operations.SessionQuery{Limit: 1})
	return err
}

func (e *remoteEditor) Open(ctx context.Context, dir, id string, servers []acp.Server) (acp.Session, []string, error) {
	o := e.options
	o.Dir, o.ID = dir, id
	options, err := e.c.talkOptions(o)
	if err != nil {
		return nil, nil, err
	}
	s, err := e.c.openOn(ctx, e.to(), options, false)
	switch {
	case operation.KindOf(err) == operation.NotFound:
		return nil, nil, &acp.ErrNoSession{ID: id}
	case err != nil:
		return nil, nil, err
	}
	var refused []string
	for _, server := range servers {
		refused = append(refused, fmt.Sprintf("The MCP server %s of the editor is not used: the agent runs on %s, which has servers of its own.", server.Name, e.c.server.url))
	}
	return &remoteEditorSession{s, e.profilesOf(ctx, s.Info().Agent)}, refused, nil
}

func (e *remoteEditor) List(ctx context.Context, dir, cursor string) ([]acp.Listed, string, error) {
	return listFor(ctx, e.at, operation.Caller{}, dir, cursor, func(operations.Session) bool { return true })
}

func (e *remoteEditor) Models(ctx context.Context) []acp.Choice {
	return modelsFor(ctx, e.at, operation.Caller{})
}

// remoteEditorSession is a conversation on a server, which goes on by itself.
type remoteEditorSession struct {
	*remote.Session
	profiles []string // that may be chosen for it
}

var (
	_ acp.Session    = (*remoteEditorSession)(nil)
	_ repl.Commander = (*remoteEditorSession)(nil)
)

// profilesOf are the permission profiles that the token may choose for an agent. A server that does not know the operation has
// the built-in ones, and says itself which of them may be chosen.
func (e *remoteEditor) profilesOf(ctx context.Context, agent string) (names []string) {
	list, err := operations.ListProfiles.Call(ctx, e.at, operation.Caller{}, operations.ProfileQuery{Agent: agent})
	if err != nil {
		return permit.Presets()
	}
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

func (s *remoteEditorSession) Head() int64 { return s.Start() }

func (s *remoteEditorSession) GoOn() {}

// Modes implements acp.Session: the profiles that may be chosen, the one that holds now, and the modes that say what the agent is after.
func (s *remoteEditorSession) Modes() ([]acp.Choice, string) {
	info := s.Info()
	names := slices.Clone(s.profiles)
	if info.Profile != "" && !slices.Contains(names, info.Profile) {
		names = append(names, info.Profile)
	}
	return modeChoices(names), cmp.Or(info.Mode, info.Profile)
}

// SetMode implements acp.Session: for what is said from now on.
func (s *remoteEditorSession) SetMode(ctx context.Context, id string) error {
	if !slices.Contains(s.profiles, id) && slices.ContainsFunc(lookingModes, func(c acp.Choice) bool { return c.ID == id }) {
		return s.Change(ctx, operations.SessionChange{Mode: id})
	}
	return s.Change(ctx, operations.SessionChange{Permissions: id, Mode: "off"})
}

func (s *remoteEditorSession) Close() error { return nil }
