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

// offer is the tools of a run: those of the mode, of the agent and of its servers that
// the profile could ever allow; beyond forty they are found by searching.
func (setup *Setup) offer(ctx context.Context, b *Toolbox, bot *config.Bot, who persona, g *gate.Judge, now chat.Terms) (*chosen, error) {
	all, listing, err := setup.withServers(ctx, b, bot, now.Yes || g.Open())
	if err != nil {
		return nil, err
	}
	could := toolsearch.Keep(append(slices.Clone(b.List), listing.Tools...), g.Possible())
	has := func(s tool.Spec) bool {
		return bot.ToolsEnabled && InMode(now.Mode, s.Name, s.ReadOnly) && (len(who.tools) == 0 || slices.Contains(who.tools, s.Name))
	}
	set := all.Filter(func(s tool.Spec) bool { return has(s) && could(s) })
	set, err = toolsearch.Of(set, toolsearch.Limit, func(s tool.Spec) bool { return !strings.HasPrefix(s.Name, "mcp__") })
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.offered = set
	b.mu.Unlock()
	return &chosen{Set: set, all: all, has: has, mode: now.Mode, notice: listing.Notice()}, nil
}

// withServers is the built-in tools and those of the agent's MCP servers. The set is
// made anew only when the servers offer something else.
func (setup *Setup) withServers(ctx context.Context, b *Toolbox, bot *config.Bot, trusted bool) (*tool.Set, mcp.Listing, error) {
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
	if b.hub == nil {
		return b.Tools, mcp.Listing{}, nil
	}
	listing := b.hub.Tools(ctx, b.Roots.Keep)
	var names []string
	for _, t := range listing.Tools {
		s := t.Spec()
		names = append(names, s.Name, s.Description, string(s.Schema))
	}
	if key := strings.Join(names, "\x00"); b.many == nil || key != b.manyOf {
		set, err := tool.NewSet(append(slices.Clone(b.List), listing.Tools...)...)
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
