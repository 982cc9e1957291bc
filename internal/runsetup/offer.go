package runsetup

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/gate"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
	"chorus/internal/tool/toolsearch"
	"chorus/internal/tool/web"
)

// offer returns the tools of a run: those of the mode, the agent, its servers and, if
// configured, of Chorus itself that the profile could ever allow. Server tools are found by
// searching if there are more than forty in all. Tools of Chorus and rare tools are always
// found by searching, unless the agent or the run names its tools.
func (setup *Setup) offer(ctx context.Context, b *Toolbox, thread chat.ThreadID, bot *config.Bot, who persona, g *gate.Judge, now chat.Terms, terms serverTerms) (*chosen, error) {
	own, operations := b.List, []tool.Tool(nil)
	if bot.OperationTools {
		own, operations = oneOfEachName(b, setup.OperationTools(g.Open() || who.asBuilt, thread), who.has)
	}
	terms.all = now.Yes || g.Open()
	all, listing, err := setup.withServers(ctx, b, bot, terms, own, operations)
	if err != nil {
		return nil, err
	}
	could := toolsearch.Keep(slices.Concat(own, operations, listing.Tools), g.Possible())
	byLine := bot.HashlineEdit || slices.Contains(who.tools, files.HashlineName)
	only := strings.Split(now.Tools, ",")
	has := func(s tool.Spec) bool {
		return (b.Web.Searches() || s.Name != web.SearchName) && (byLine || s.Name != files.HashlineName) && bot.ToolsEnabled && InMode(now.Mode, s.Name, s.ReadOnly) && who.has(s) &&
			(now.Tools == "" || slices.Contains(only, s.Name))
	}
	set := all.Filter(func(s tool.Spec) bool { return has(s) && could(s) })
	set, err = shelve(set, operations, who.tools, now.Tools != "")
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.offered = set
	b.Roots.ShowLineHashes(slices.ContainsFunc(set.Specs(), func(s tool.Spec) bool { return s.Name == files.HashlineName }))
	b.mu.Unlock()
	changes := newServerChanges(b, listing, func(tools []tool.Tool) func(tool.Spec) bool {
		could := toolsearch.Keep(tools, g.Possible())
		return func(s tool.Spec) bool { return has(s) && could(s) }
	})
	return &chosen{Set: set, all: all, has: has, mode: now.Mode, servers: changes}, nil
}

// oneOfEachName resolves name clashes between the agent's own tools and operations on projects, such as
// git_commit and search_files. An agent with files of its own gets the tools for its workspace, and the
// operations of those names are left out. Any other agent gets the operations.
func oneOfEachName(b *Toolbox, operations []tool.Tool, has func(tool.Spec) bool) (own, kept []tool.Tool) {
	left := map[string]bool{}
	for _, op := range operations {
		if mine, taken := b.Tools.Named(op.Spec().Name); taken {
			if has(mine.Spec()) {
				continue
			}
			left[mine.Spec().Name] = true
		}
		kept = append(kept, op)
	}
	return slices.DeleteFunc(slices.Clone(b.List), func(t tool.Tool) bool { return left[t.Spec().Name] }), kept
}

// Specs returns the tools that the last run was shown, or before the first run, those of every run.
func (b *Toolbox) Specs() []tool.Spec {
	b.mu.Lock()
	set := b.offered
	b.mu.Unlock()
	set = cmp.Or(set, b.Tools)
	return append(set.Specs(), set.Unlisted()...)
}

// shelve moves tools from the list that the model reads to the one that it
// searches. If an agent or a run names its tools, those stay listed.
func shelve(set *tool.Set, operations []tool.Tool, named []string, given bool) (*tool.Set, error) {
	ours := map[string]bool{}
	for _, t := range operations {
		if name := t.Spec().Name; !slices.Contains(named, name) {
			ours[name] = true
		}
	}
	chosen := given || len(named) > 0
	rare := func(s tool.Spec) bool { return ours[s.Name] || s.Rare && !chosen }
	listed := slices.DeleteFunc(set.Specs(), rare)
	limit, many := toolsearch.Limit, len(listed) > toolsearch.Limit
	if len(listed) < len(set.Specs()) {
		limit = 0
	}
	searched, err := toolsearch.Of(set, limit, func(s tool.Spec) bool { return !rare(s) && !(many && strings.HasPrefix(s.Name, "mcp__")) })
	if err != nil || len(ours) > 0 || many {
		return searched, err
	}
	return toolsearch.Shorter(set, searched), nil
}

// Label says what a call would do, for people.
func (b *Toolbox) Label(name string, args []byte) string {
	b.mu.Lock()
	set := b.offered
	b.mu.Unlock()
	set = cmp.Or(set, b.Tools)
	if label := set.Label(name, args); label != name {
		return label
	}
	return b.Tools.Label(name, args) // perhaps a tool of an earlier run
}

// Close ends everything that the toolbox has running.
func (b *Toolbox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hub != nil {
		b.hub.Close()
		b.hub = nil
	}
	return errors.Join(b.Proxy.Close(), b.Roots.Close())
}
