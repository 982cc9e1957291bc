package runsetup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/gate"
	"chorus/internal/tool"
	"chorus/internal/tool/mcp"
	"chorus/internal/tool/toolsearch"
)

// offer is the tools of a run: those of the mode, of the agent, of its servers and, where the configuration says
// so, of Chorus itself that the profile could ever allow. Those of servers are found by searching when there are more
// than forty in all, and those of Chorus always, unless the agent names them.
func (setup *Setup) offer(ctx context.Context, b *Toolbox, bot *config.Bot, who persona, g *gate.Judge, now chat.Terms) (*chosen, error) {
	var operations []tool.Tool
	if bot.OperationTools {
		operations = setup.OperationTools(g.Open())
	}
	all, listing, err := setup.withServers(ctx, b, bot, now.Yes || g.Open(), operations)
	if err != nil {
		return nil, err
	}
	could := toolsearch.Keep(slices.Concat(b.List, operations, listing.Tools), g.Possible())
	has := func(s tool.Spec) bool {
		return bot.ToolsEnabled && InMode(now.Mode, s.Name, s.ReadOnly) && (len(who.tools) == 0 || slices.Contains(who.tools, s.Name))
	}
	set := all.Filter(func(s tool.Spec) bool { return has(s) && could(s) })
	set, err = shelve(set, operations, who.tools)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.offered = set
	b.mu.Unlock()
	return &chosen{Set: set, all: all, has: has, mode: now.Mode, notice: listing.Notice()}, nil
}

// shelve takes tools out of the list that the model reads, into the one that it searches.
func shelve(set *tool.Set, operations []tool.Tool, named []string) (*tool.Set, error) {
	rare := map[string]bool{}
	for _, t := range operations {
		if name := t.Spec().Name; !slices.Contains(named, name) {
			rare[name] = true
		}
	}
	limit, many := toolsearch.Limit, len(set.Specs())-len(rare) > toolsearch.Limit
	if len(rare) > 0 {
		limit = 0
	}
	return toolsearch.Of(set, limit, func(s tool.Spec) bool { return !rare[s.Name] && !(many && strings.HasPrefix(s.Name, "mcp__")) })
}

// withServers is the built-in tools, further ones and those of the agent's MCP servers. The set is
// made anew only when they are others.
func (setup *Setup) withServers(ctx context.Context, b *Toolbox, bot *config.Bot, trusted bool, more []tool.Tool) (*tool.Set, mcp.Listing, error) {
	servers := setup.servers(b.Dir, bot, trusted)
	key, err := json.Marshal(servers)
	if err != nil {
		return nil, mcp.Listing{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if string(key) != b.servers {
		if b.hub != nil {
			b.hub.Close()
			b.hub = nil
		}
		b.many = nil
		if b.servers = string(key); len(servers) > 0 {
			b.hub = mcp.New(servers, mcp.Options{Dir: b.Dir, Environ: setup.Environ, Version: "chorus"})
		}
	}
	if b.hub == nil && len(more) == 0 {
		return b.Tools, mcp.Listing{}, nil
	}
	var listing mcp.Listing
	if b.hub != nil {
		listing = b.hub.Tools(ctx, b.Roots.Keep)
	}
	more = slices.Concat(more, listing.Tools)
	var names []string
	for _, t := range more {
		s := t.Spec()
		names = append(names, s.Name, s.Description, string(s.Schema))
	}
	if key := strings.Join(names, "\x00"); b.many == nil || key != b.manyOf {
		set, err := tool.NewSet(slices.Concat(b.List, more)...)
		if err != nil {
			return nil, listing, err
		}
		b.many, b.manyOf = set, key
	}
	return b.many, listing, nil
}

// servers are those of the configuration, and those of the repository's own file where
// somebody trusts it.
func (setup *Setup) servers(dir string, bot *config.Bot, trusted bool) []mcp.Server {
	var out []mcp.Server
	for _, s := range bot.MCPServers {
		out = append(out, mcp.Server{Name: s.Name, Type: s.Type, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir, URL: s.URL, Headers: s.Headers,
			StartTimeout: s.StartTimeout, CallTimeout: s.CallTimeout})
	}
	repo, err := setup.Settings.RepositoryServers(dir)
	switch {
	case err != nil:
		setup.Notices.WarnOnce(err.Error())
	case len(repo.Servers) > 0 && !repo.Trusted && !trusted:
		setup.Notices.WarnOnce(fmt.Sprintf("%s names MCP servers that would run as you: %s; they are left out until you have looked at it and said: chorus config trust",
			repo.File, strings.Join(repo.Names(), ", ")))
	default:
		for _, p := range repo.Problems {
			setup.Notices.WarnOnce(repo.File + ": " + p)
		}
		out = append(out, repo.Servers...)
	}
	return out
}

// Label says what a call would do, for people.
func (b *Toolbox) Label(name string, args []byte) string {
	b.mu.Lock()
	set := b.offered
	b.mu.Unlock()
	if set == nil {
		set = b.Tools
	}
	if label := set.Label(name, args); label != name {
		return label
	}
	return b.Tools.Label(name, args) // perhaps one of an earlier run
}

// Close ends what the bench has running.
func (b *Toolbox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hub != nil {
		b.hub.Close()
		b.hub = nil
	}
	return errors.Join(b.Proxy.Close(), b.Roots.Close())
}
