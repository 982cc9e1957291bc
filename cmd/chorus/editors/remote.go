package editors

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/client"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/runsetup"
	"chorus/internal/transport/acp"
	"chorus/internal/transport/repl"
	"chorus/internal/transport/repl/remote"
)

// Connection carries out operations on a server. If the person gets another token while an editor runs, the
// connection can be renewed; open sessions continue to use it.
type Connection struct {
	Dial func() (*client.Client, error)

	mu sync.Mutex
	at *client.Client // nil: no token yet
}

var _ operation.Executor = (*Connection)(nil)

// current returns the connection and creates it at first use. An error means that the person must sign in.
func (c *Connection) current() (*client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		at, err := c.Dial()
		if err != nil {
			return nil, &acp.AuthError{Text: err.Error()}
		}
		c.at = at
	}
	return c.at, nil
}

// renew makes the next operation read the token again.
func (c *Connection) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != nil {
		c.at.Close()
		c.at = nil
	}
}

// Close ends the connection.
func (c *Connection) Close() { c.renew() }

// Execute implements operation.Executor.
func (c *Connection) Execute(ctx context.Context, by operation.Caller, d *operation.Definition, in any) (any, error) {
	at, err := c.current()
	if err != nil {
		return nil, err
	}
	out, err := at.Execute(ctx, by, d, in)
	return out, mustSignIn(err)
}

// Follow implements operation.Executor.
func (c *Connection) Follow(ctx context.Context, by operation.Caller, d *operation.Definition, in any) iter.Seq2[any, error] {
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

// mustSignIn turns an unknown-token error into a request to sign in.
func mustSignIn(err error) error {
	if operation.KindOf(err) == operation.Unsigned {
		return &acp.AuthError{Text: err.Error()}
	}
	return err
}

// Remote offers the sessions of a server to an editor.
type Remote struct {
	At      *Connection
	Options runsetup.SessionOptions
	// Server is the server's address. TokenFile holds the token; if "", it is in the environment.
	Server, TokenFile string
	// OpenSession opens or creates a session there.
	OpenSession func(context.Context, runsetup.SessionOptions) (*remote.Session, error)
}

var (
	_ acp.Host          = (*Remote)(nil)
	_ acp.Authenticator = (*Remote)(nil)
)

// SignIn is the only way to sign in to a server.
const SignIn = "token"

// AuthMethods implements acp.Authenticator.
func (e *Remote) AuthMethods() []acp.Choice {
	where := "CHORUS_TOKEN in the editor's configuration of this agent, or the file that --token-file names"
	if e.TokenFile != "" {
		where = "the file " + e.TokenFile
	}
	return []acp.Choice{{ID: SignIn, Name: "Token of " + e.Server, About: "Put a token of the server into " + where + ", then try again. To make one, run `chorus token create --scopes chat,approve` on the server."}}
}

// Authenticate implements acp.Authenticator. It reads the token again and tries it.
func (e *Remote) Authenticate(ctx context.Context, _ string) error {
	e.At.renew()
	_, err := operations.ListSessions.Call(ctx, e.At, operation.Caller{}, operations.SessionQuery{Limit: 1})
	return err
}

// Open implements acp.Host.
func (e *Remote) Open(ctx context.Context, dir, id string, servers []acp.Server) (acp.Session, []string, error) {
	o := e.Options
	o.Dir, o.ID = dir, id
	s, err := e.OpenSession(ctx, o)
	switch {
	case operation.KindOf(err) == operation.NotFound:
		return nil, nil, &acp.ErrNoSession{ID: id}
	case err != nil:
		return nil, nil, err
	}
	var refused []string
	for _, server := range servers {
		refused = append(refused, fmt.Sprintf("The editor's MCP server %s is not used, because the agent runs on %s, which has its own servers.", server.Name, e.Server))
	}
	return &remoteSession{s, e.profilesOf(ctx, s.Info().Agent)}, refused, nil
}

// List implements acp.Host.
func (e *Remote) List(ctx context.Context, dir, cursor string) ([]acp.Listed, string, error) {
	return listFor(ctx, e.At, operation.Caller{}, dir, cursor, func(operations.Session) bool { return true })
}

// Models implements acp.Host.
func (e *Remote) Models(ctx context.Context) []acp.Choice {
	return modelsFor(ctx, e.At, operation.Caller{})
}

// remoteSession is a conversation on a server, where it runs without the editor.
type remoteSession struct {
	*remote.Session
	profiles []string // that may be chosen for the session
}

var (
	_ acp.Session    = (*remoteSession)(nil)
	_ repl.Commander = (*remoteSession)(nil)
)

// profilesOf returns the permission profiles that the token may choose for an agent. For a server that does not know the operation it
// returns the built-in ones; that server refuses those that may not be chosen.
func (e *Remote) profilesOf(ctx context.Context, agent string) (names []string) {
	list, err := operations.ListProfiles.Call(ctx, e.At, operation.Caller{}, operations.ProfileQuery{Agent: agent})
	if err != nil {
		return permit.Presets()
	}
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

func (s *remoteSession) Head() int64 { return s.Start() }

func (s *remoteSession) GoOn() {}

// Modes implements acp.Session: the available profiles, the current one, and the modes that describe the kind of work.
func (s *remoteSession) Modes() ([]acp.Choice, string) {
	info := s.Info()
	names := slices.Clone(s.profiles)
	if info.Profile != "" && !slices.Contains(names, info.Profile) {
		names = append(names, info.Profile)
	}
	return modeChoices(names), cmp.Or(info.Mode, info.Profile)
}

// SetMode implements acp.Session. It applies to later prompts.
func (s *remoteSession) SetMode(ctx context.Context, id string) error {
	if !slices.Contains(s.profiles, id) && slices.Contains(chat.ModeNames(), id) {
		return s.Change(ctx, operations.SessionChange{Mode: id})
	}
	return s.Change(ctx, operations.SessionChange{Permissions: id, Mode: chat.NoMode})
}

func (s *remoteSession) Close() error { return nil }
