package runsetup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/settings"
	"chorus/internal/tool/mcp"
)

// NewServer is an MCP server as somebody adds it.
type NewServer = mcp.NewServer

// ServerInfo is an MCP server for people.
type ServerInfo struct {
	Name  string `json:"name"`
	Where string `json:"where"` // what is started, or the address
	From  string `json:"from"`  // configuration, mcp.json of the home, or .mcp.json of the folder
	State string `json:"state"` // enabled, logged in, not trusted
}

// ServerReport is what a server answered when it was tried.
type ServerReport struct {
	Name         string   `json:"name"`
	State        string   `json:"state"`
	Why          string   `json:"why,omitempty"`
	Tools        []string `json:"tools"`
	Prompts      []string `json:"prompts"`
	Instructions string   `json:"instructions,omitempty"`
}

// logins are those of the home; what they hold is hidden wherever texts are shown or kept.
func (setup *Setup) logins() *mcp.Logins {
	return mcp.NewLogins(setup.Home.MCPLogins(), setup.Logs.Remember)
}

// homeServers are those that were added with chorus mcp add, without those whose names are taken.
func (setup *Setup) homeServers(taken []mcp.Server) []mcp.Server {
	added, problems, err := mcp.ReadServers(setup.Home.MCPServers())
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

// known are all servers of a folder's agent, with where each is from.
func (setup *Setup) knownServers(dir string) (servers []mcp.Server, infos []ServerInfo, repo settings.Repository, bot *config.Bot, err error) {
	if bot, err = setup.Settings.Bot(""); err != nil {
		return nil, nil, repo, nil, err
	}
	all, repo := setup.servers(dir, bot, nil, false)
	logins := setup.logins()
	for _, s := range all {
		info := ServerInfo{Name: s.Name, Where: strings.TrimSuffix(strings.TrimPrefix(s.String(), s.Name+" ("), ")"), From: "the configuration", State: "enabled"}
		switch {
		case s.Workspace:
			info.From = repo.File
		case !slices.ContainsFunc(bot.MCPServers, func(c config.MCPServer) bool { return c.Name == s.Name }):
			info.From = setup.Home.MCPServers()
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

// AddServer adds an MCP server to the home. A name that is in use is an error.
func (setup *Setup) AddServer(dir, name string, s NewServer) error {
	infos, err := setup.Servers(dir)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if info.Name == name {
			return fmt.Errorf("there is a server %s already, in %s", name, info.From)
		}
	}
	return mcp.AddServer(setup.Home.MCPServers(), name, s)
}

// RemoveServer takes out a server that was added, and its login.
func (setup *Setup) RemoveServer(dir, name string) error {
	servers, infos, _, _, err := setup.knownServers(dir)
	if err != nil {
		return err
	}
	there, err := mcp.RemoveServer(setup.Home.MCPServers(), name)
	if err != nil {
		return err
	}
	if !there {
		for _, info := range infos {
			if info.Name == name {
				return fmt.Errorf("%s is not of chorus mcp add: take it out of %s", name, info.From)
			}
		}
		return unknownServer(name, infos)
	}
	for _, s := range servers {
		if s.Name == name {
			return setup.logins().Remove(s)
		}
	}
	return nil
}

func unknownServer(name string, infos []ServerInfo) error {
	var names []string
	for _, info := range infos {
		names = append(names, info.Name)
	}
	return fmt.Errorf("there is no MCP server %s; there are: %s", name, cmp.Or(strings.Join(names, ", "), "none"))
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

// LogIn logs in to a server on the network; show is given the page on which a person says yes.
func (setup *Setup) LogIn(ctx context.Context, dir, name string, show func(page string)) error {
	s, _, _, err := setup.serverNamed(dir, name)
	switch {
	case err != nil:
		return err
	case s.URL == "":
		return fmt.Errorf("%s is a program of this machine; only servers on the network are logged in to", name)
	}
	return setup.logins().Login(ctx, s, "chorus", show)
}

// LogOut forgets the login to a server.
func (setup *Setup) LogOut(dir, name string) error {
	s, _, _, err := setup.serverNamed(dir, name)
	if err != nil {
		return err
	}
	if !setup.logins().Has(s) {
		return fmt.Errorf("nobody is logged in to %s", name)
	}
	return setup.logins().Remove(s)
}

// TestServer starts a server as a run would, and says what it has.
func (setup *Setup) TestServer(ctx context.Context, o SessionOptions, name string) (ServerReport, error) {
	out := ServerReport{Name: name, Tools: []string{}, Prompts: []string{}}
	b, g, err := setup.toolboxFor(&o)
	if err != nil {
		return out, err
	}
	s, repo, bot, err := setup.serverNamed(o.Dir, name)
	if err != nil {
		return out, err
	}
	rules, err := g.Limits.Load(cmp.Or(o.Profile, bot.Permissions))
	if err != nil {
		return out, err
	}
	plan := setup.Isolation.Plan(bot, rules, journal.Thread{Dir: o.Dir}, g.Work.Terms, engine.Work{})
	hub := mcp.New([]mcp.Server{s}, setup.hubOptions(b, repo, plan))
	defer hub.Close()
	listing := hub.Tools(ctx, nil)
	status := hub.Status()[0]
	out.State, out.Why = string(status.State), status.Why
	for _, t := range listing.Tools {
		if strings.HasPrefix(t.Spec().Name, "mcp__") {
			out.Tools = append(out.Tools, t.Spec().Name)
		}
	}
	for _, one := range listing.Instructions {
		out.Instructions = one.Text
	}
	if status.State == mcp.Ready {
		for _, p := range hub.Prompts(ctx) {
			out.Prompts = append(out.Prompts, p.String())
		}
		return out, nil
	}
	return out, errors.New(status.String())
}
