package runsetup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/settings"
	"chorus/internal/skill/approved"
	"chorus/internal/tool/mcp"
	"chorus/internal/tool/mcp/serverconfig"
	"chorus/internal/usage"
)

// NewServer is an MCP server that somebody adds.
type NewServer = serverconfig.NewServer

// ServerInfo describes an MCP server for people.
type ServerInfo struct {
	Name   string
	Where  string // the command or the address
	From   string // the configuration, mcp.json of the home, or .mcp.json of the folder
	State  string // enabled, logged in, not trusted
	Added  bool   // it is in mcp.json of the home
	Seen   mcp.Seen
	Lock   string // on, changed or off; "": it was not used yet
	LockID string
}

// ServerReport is what a server answered when it was tried.
type ServerReport struct {
	Name, State, Why          string
	Tools, Prompts, Resources []string
	Instructions              string
}

// UnknownServer is the error for a name that is no server's.
type UnknownServer struct {
	Name  string
	Known []string
}

// Error implements error.
func (e *UnknownServer) Error() string {
	return fmt.Sprintf("there is no MCP server %s; there are: %s", e.Name, cmp.Or(strings.Join(e.Known, ", "), "none"))
}

// ServerState is the error for an action that a server's state does not allow.
type ServerState struct{ Text string }

// Error implements error.
func (e *ServerState) Error() string { return e.Text }

// logins returns the logins of the home. Their secrets are redacted wherever texts are shown or stored.
func (setup *Setup) logins() *mcp.Logins {
	logins := mcp.NewLogins(setup.Home.MCPLogins(), setup.Logs.Remember)
	logins.Sync = func(ctx context.Context, file string) error {
		name := path.Join(settings.MCPLoginsName, file)
		if copies := setup.Settings.Copies(); copies.Owns(name) {
			return copies.Sync(ctx, name)
		}
		return nil
	}
	return logins
}

// homeServers returns the servers added with chorus mcp add, except those whose names are taken.
func (setup *Setup) homeServers(taken []mcp.Server) []mcp.Server {
	added, problems, err := serverconfig.ReadServers(setup.Home.MCPServers())
	if err != nil {
		setup.Notices.WarnOnce(err.Error())
	}
	for _, p := range problems {
		setup.Notices.WarnOnce(setup.Home.MCPServers() + ": " + p.String())
	}
	return slices.DeleteFunc(added, func(s mcp.Server) bool {
		return s.Disabled || slices.ContainsFunc(taken, func(t mcp.Server) bool { return t.Name == s.Name })
	})
}

// knownServers returns all servers of a folder's agent, and where each comes from.
func (setup *Setup) knownServers(dir string) (servers []mcp.Server, infos []ServerInfo, repo settings.Repository, bot *config.Bot, err error) {
	if bot, err = setup.Settings.Bot(""); err != nil {
		return nil, nil, repo, nil, err
	}
	all, repo := setup.servers(dir, bot, nil, false)
	logins, seen := setup.logins(), mcp.NewLastSeen(setup.Home.MCPStatus())
	locked := map[string]approved.Server{}
	for _, one := range setup.Skills.Servers() {
		locked[one.ID] = one
	}
	for _, s := range all {
		info := ServerInfo{Name: s.Name, Where: strings.TrimSuffix(strings.TrimPrefix(s.String(), s.Name+" ("), ")"), From: "the configuration", State: "enabled", Seen: seen.Get(s)}
		if lock, ok := locked[setup.describe(dir, s, nil).ID()]; ok {
			info.Lock, info.LockID = string(lock.Status), lock.ID
		}
		switch {
		case s.Workspace:
			info.From = repo.File
		case !slices.ContainsFunc(bot.MCPServers, func(c config.MCPServer) bool { return c.Name == s.Name }):
			info.From, info.Added = setup.Home.MCPServers(), true
		}
		if s.URL != "" && logins.Has(s) {
			info.State = "logged in"
		}
		servers, infos = append(servers, s), append(infos, info)
	}
	if !repo.Trusted {
		for _, s := range repo.Servers {
			infos = append(infos, ServerInfo{Name: s.Name, Where: s.Command + s.URL, From: repo.File, State: "not trusted: chorus config trust"})
		}
	}
	return servers, infos, repo, bot, nil
}

// Servers lists the MCP servers that agents in a folder have.
func (setup *Setup) Servers(dir string) ([]ServerInfo, error) {
	_, infos, _, _, err := setup.knownServers(dir)
	return infos, err
}

// changeServersTime limits how long a change of the server list may take.
const changeServersTime = 20 * time.Second

// AddServer adds an MCP server to the home. A name in use is an error, unless it belongs to the same server.
func (setup *Setup) AddServer(dir, name string, s NewServer) error {
	infos, err := setup.Servers(dir)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if info.Name == name && !info.Added {
			return usage.Wrap(fmt.Errorf("there is already a server %s, in %s", name, info.From))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), changeServersTime)
	defer cancel()
	err = setup.Settings.Copies().Change(ctx, settings.MCPServersName, func(text []byte) ([]byte, error) { return serverconfig.AddServer(text, name, s) })
	if err != nil {
		return usage.Wrap(err)
	}
	return nil
}

// RemoveServer removes a server that was added, and its login.
func (setup *Setup) RemoveServer(dir, name string) error {
	servers, infos, _, _, err := setup.knownServers(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), changeServersTime)
	defer cancel()
	there := false
	err = setup.Settings.Copies().Change(ctx, settings.MCPServersName, func(text []byte) (next []byte, err error) {
		next, there, err = serverconfig.RemoveServer(text, name)
		return next, err
	})
	if err != nil {
		return err
	}
	if !there {
		for _, info := range infos {
			if info.Name == name {
				return &ServerState{fmt.Sprintf("%s was not added by chorus mcp add: remove it from %s", name, info.From)}
			}
		}
		return unknownServer(name, infos)
	}
	for _, s := range servers {
		if s.Name == name {
			return errors.Join(setup.logins().Remove(s), mcp.NewLastSeen(setup.Home.MCPStatus()).Remove(s))
		}
	}
	return nil
}

func unknownServer(name string, infos []ServerInfo) error {
	e := &UnknownServer{Name: name}
	for _, info := range infos {
		e.Known = append(e.Known, info.Name)
	}
	return e
}

func (setup *Setup) serverNamed(dir, name string) (mcp.Server, settings.Repository, *config.Bot, error) {
	servers, infos, repo, bot, err := setup.knownServers(dir)
	if err != nil {
		return mcp.Server{}, repo, bot, err
	}
	for _, s := range servers {
		if s.Name == name {
			return s, repo, bot, nil
		}
	}
	return mcp.Server{}, repo, bot, unknownServer(name, infos)
}

// ServerLogin is what a login needs besides the server itself.
type ServerLogin = mcp.LoginOptions

// LogIn logs in to a remote server. show is called with the page on which a person agrees.
func (setup *Setup) LogIn(ctx context.Context, dir, name string, o ServerLogin, show func(page string)) error {
	s, err := setup.remoteServer(dir, name)
	if err != nil {
		return err
	}
	o.Version = "chorus"
	return setup.logins().Login(ctx, s, o, show)
}

// remoteServer returns a server that supports logins.
func (setup *Setup) remoteServer(dir, name string) (mcp.Server, error) {
	s, _, _, err := setup.serverNamed(dir, name)
	if err == nil && s.URL == "" {
		err = &ServerState{fmt.Sprintf("%s is a program of this machine; only servers on the network are logged in to", name)}
	}
	return s, err
}

// OpenLogin is a login that somebody on another machine has begun.
type OpenLogin = mcp.OpenLogin

// ErrUnknownLogin is the error for a login that nobody has begun; see mcp.OpenLogins.
var ErrUnknownLogin = mcp.ErrUnknownLogin

// BeginLogin begins a login. The browser returns to the address redirect, and done is called
// with the outcome. If a login cannot be begun, the error is a *ServerState.
func (setup *Setup) BeginLogin(ctx context.Context, dir, name string, o ServerLogin, redirect string, done func(error)) (*OpenLogin, error) {
	s, err := setup.remoteServer(dir, name)
	if err != nil {
		return nil, err
	}
	o.Version = "chorus"
	one, err := setup.openLogins.Begin(ctx, setup.logins(), s, o, redirect, done)
	if err != nil && ctx.Err() == nil {
		return nil, &ServerState{err.Error()}
	}
	return one, err
}

// FinishLogin processes what a browser returned with and waits until the login is over.
func (setup *Setup) FinishLogin(ctx context.Context, came url.Values) (server string, _ error) {
	return setup.openLogins.Return(ctx, came)
}

// WaitForLogin waits until a login is over. It returns false if ctx ends first.
func (setup *Setup) WaitForLogin(ctx context.Context, id string) (*OpenLogin, bool, error) {
	return setup.openLogins.Wait(ctx, id)
}

// CloseLogins cancels the logins that were begun.
func (setup *Setup) CloseLogins() { setup.openLogins.Close() }

// LogOut deletes the login to a server.
func (setup *Setup) LogOut(dir, name string) error {
	s, _, _, err := setup.serverNamed(dir, name)
	if err != nil {
		return err
	}
	if !setup.logins().Has(s) {
		return &ServerState{fmt.Sprintf("nobody is logged in to %s", name)}
	}
	return setup.logins().Remove(s)
}

// testTime is how long a tried server may take to answer, not counting its start.
const testTime = 30 * time.Second

// TestServer starts a server as a run would and returns what it offers.
// It is no error if the server does not start.
func (setup *Setup) TestServer(ctx context.Context, o SessionOptions, name string) (ServerReport, error) {
	out := ServerReport{Name: name, Tools: []string{}, Prompts: []string{}, Resources: []string{}}
	b, g, err := setup.toolboxFor(&o)
	if err != nil {
		return out, err
	}
	defer setup.forget(b)
	s, repo, bot, err := setup.serverNamed(o.Dir, name)
	if err != nil {
		return out, err
	}
	rules, err := g.Limits.Load(cmp.Or(o.Profile, bot.Permissions))
	if err != nil {
		return out, err
	}
	plan := setup.Isolation.Plan(bot, rules, journal.Thread{Dir: o.Dir}, g.Work.Terms, engine.Work{})
	options := setup.hubOptions(b, repo, plan)
	options.Observe = nil // more is recorded below
	hub := mcp.New([]mcp.Server{s}, options)
	defer hub.Close()
	listing := hub.Tools(ctx, nil)
	status := hub.Status()[0]
	out.State, out.Why = string(status.State), status.Why
	for _, t := range listing.Tools {
		if mcp.ServerOf(t) != "" {
			out.Tools = append(out.Tools, t.Spec().Name)
		}
	}
	for _, one := range listing.Instructions {
		out.Instructions = one.Text
	}
	if status.State == mcp.Ready {
		ctx, cancel := context.WithTimeout(ctx, testTime)
		defer cancel()
		for _, p := range hub.Prompts(ctx) {
			out.Prompts = append(out.Prompts, p.String())
		}
		out.Resources = append(out.Resources, hub.Resources(ctx)...)
	}
	return out, mcp.NewLastSeen(setup.Home.MCPStatus()).Set(s, mcp.Seen{At: time.Now().UTC(), State: status.State, Why: status.Why,
		Tools: len(out.Tools), Prompts: len(out.Prompts), Resources: len(out.Resources)})
}

// observeServer records the state of a run's server. It keeps the
// last known numbers of prompts and resources.
func (setup *Setup) observeServer(s mcp.Server, status mcp.Status) {
	seen := mcp.NewLastSeen(setup.Home.MCPStatus())
	now := seen.Get(s)
	now.At, now.State, now.Why = time.Now().UTC(), status.State, status.Why
	if status.State == mcp.Ready {
		now.Tools = status.Tools
	}
	if err := seen.Set(s, now); err != nil {
		setup.Log.Warn("the state of an MCP server could not be stored", "component", "mcp", "event", "status_not_kept", "server", s.Name, "error", err.Error())
	}
}

// forget closes the tools of a thread that never existed.
func (setup *Setup) forget(b *Toolbox) {
	setup.mu.Lock()
	delete(setup.toolboxes, b.Proxy.Thread)
	setup.mu.Unlock()
	setup.Overrides.Forget(b.Proxy.Thread)
	if err := b.Close(); err != nil {
		setup.Log.Warn("could not close tools", "component", "app", "event", "tools_not_put_away", "thread", b.Proxy.Thread, "error", err)
	}
}
