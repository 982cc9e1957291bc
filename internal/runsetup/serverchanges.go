package runsetup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"chorus/internal/text"
	"chorus/internal/tool"
	"chorus/internal/tool/mcp"
	"chorus/internal/untrusted"
)

// serverChanges follows the MCP servers of a run while it continues. The list of tools is
// at the head of the prompt and fixed for the run. If a server adds a tool meanwhile, a
// note says so, and the tool can be called by name at once.
type serverChanges struct {
	hub     *mcp.Hub                          // nil if there are no servers
	list    func(context.Context) mcp.Listing // without anything unapproved
	notice  string                            // which servers are missing
	manual  string                            // the servers' instructions for use
	offers  func([]tool.Tool) func(tool.Spec) bool
	atFirst map[string]string // the tools that the run began with, by name

	mu      sync.Mutex
	changed <-chan struct{} // closed when the fields below are out of date; nil before the first look
	added   *tool.Set       // nil if nothing was added
	news    string
	waits   bool // something is disabled until approved, which no server reports
}

func newServerChanges(b *Toolbox, first mcp.Listing, offers func([]tool.Tool) func(tool.Spec) bool) *serverChanges {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &serverChanges{hub: b.hub, list: b.listing, notice: first.Notice(), manual: manualOf(first), offers: offers, atFirst: map[string]string{}}
	for _, t := range first.Tools {
		c.atFirst[t.Spec().Name] = wording(t.Spec())
	}
	return c
}

func wording(s tool.Spec) string { return s.Description + "\x00" + string(s.Schema) }

// manualOf frames the servers' instructions for use as untrusted text: they
// are not orders of anybody whom the agent serves.
func manualOf(l mcp.Listing) string {
	var out []string
	for _, one := range l.Instructions {
		out = append(out, untrusted.Frame("instructions of the MCP server "+one.Server, one.Text))
	}
	return strings.Join(out, "\n")
}

// look updates what is known. It is cheap if nothing has changed.
func (c *serverChanges) look(ctx context.Context) {
	if c == nil || c.hub == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed != nil && !c.waits {
		select {
		case <-c.changed:
		default:
			return
		}
	}
	c.changed = c.hub.Changed() // before looking, so that no change is missed
	now := c.list(ctx)
	may := c.offers(now.Tools)
	var more []tool.Tool
	var lines []string
	there := map[string]bool{}
	for _, t := range now.Tools {
		spec := t.Spec()
		there[spec.Name] = true
		if c.atFirst[spec.Name] == wording(spec) || !may(spec) {
			continue
		}
		more = append(more, t)
		if len(lines) < maxNews {
			lines = append(lines, fmt.Sprintf("New or changed: %s. Call it by this name.\n%s", spec.Name,
				untrusted.Frame("description of the tool "+spec.Name, text.Clip(spec.Description, 1000)+"\nParameters: "+text.Clip(string(spec.Schema), 4000))))
		}
	}
	var gone []string
	for name := range c.atFirst {
		if !there[name] {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		slices.Sort(gone)
		lines = append(lines, "No longer available: "+text.Clip(strings.Join(gone, ", "), 1000)+".")
	}
	c.waits = len(now.Off) > 0
	c.notice, c.manual, c.news, c.added = now.Notice(), manualOf(now), strings.Join(lines, "\n"), nil
	if len(more) > 0 {
		if set, err := tool.NewSet(more...); err == nil { // on an error two have the same name, and neither can be offered
			c.added = set
		}
	}
}

// maxNews is how many changed tools a note describes.
const maxNews = 10

// find resolves a call of a tool that was added since the run began.
func (c *serverChanges) find(name string, args []byte) (tool.Tool, []byte, *tool.Set) {
	if c == nil || c.hub == nil {
		return nil, nil, nil
	}
	c.look(context.Background())
	c.mu.Lock()
	set := c.added
	c.mu.Unlock()
	if set == nil {
		return nil, nil, nil
	}
	t, plain, err := set.Resolve(name, args)
	if err != nil {
		return nil, nil, nil
	}
	return t, plain, set
}

// holds returns the set of a tool that was added, or nil.
func (c *serverChanges) holds(t tool.Tool) *tool.Set {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.added != nil && c.added.Has(t) {
		return c.added
	}
	return nil
}

// notes returns the note sources about servers.
func (c *serverChanges) notes() []NoteSource {
	return []NoteSource{
		{What: "mcp servers", Gone: "All MCP servers are running, with the tools that are listed.", Text: func(ctx context.Context, _ NoteContext) (string, error) {
			c.look(ctx)
			c.mu.Lock()
			defer c.mu.Unlock()
			return strings.TrimSpace(c.notice + "\n" + c.news), nil
		}},
		{What: "mcp resources", Gone: "No watched resource has changed since you read it.", Text: func(context.Context, NoteContext) (string, error) {
			if c.hub == nil {
				return "", nil
			}
			var lines []string
			for _, one := range c.hub.ChangedResources() {
				lines = append(lines, one.Server+": "+one.URI)
			}
			if len(lines) == 0 {
				return "", nil
			}
			return "Resources that you watch have changed since you read them; mcp_read reads them again:\n" + strings.Join(lines, "\n"), nil
		}},
		{What: "mcp instructions", Text: func(context.Context, NoteContext) (string, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.manual, nil
		}},
	}
}
