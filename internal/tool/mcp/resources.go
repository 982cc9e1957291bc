package mcp

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/tool"
)

//go:embed mcp_resources.md
var resourcesWords string

//go:embed mcp_read.md
var readWords string

const (
	mostResources = 1000 // of one server
	listPages     = 50
)

type resourcesIn struct {
	Server string `json:"server,omitempty" jsonschema:"Only this server."`
	Filter string `json:"filter,omitempty" jsonschema:"Only resources with this text in them."`
}

type readIn struct {
	Server string `json:"server" jsonschema:"The server, as mcp_resources names it."`
	URI    string `json:"uri" jsonschema:"The resource's URI."`
	Watch  *bool  `json:"watch,omitempty" jsonschema:"true: you are told when it changes, if the server can tell; false: not any more."`
}

// The action strings of resources have the form of the server's tools, so that
// one rule covers a server. No tool can have these names.
func (s *server) listAction() string { return "mcp__" + s.key + "__@list" }
func (s *server) readAction() string { return "mcp__" + s.key + "__@read" }

// resourceTools returns mcp_resources and mcp_read.
func (h *Hub) resourceTools(keep tool.Keep) []tool.Tool {
	var lists, reads []string
	for _, s := range h.servers {
		lists, reads = append(lists, s.listAction()), append(reads, s.readAction())
	}
	return []tool.Tool{
		tool.New(tool.Func[resourcesIn]{
			Name: "mcp_resources", Description: resourcesWords, Risk: tool.Medium, JudgedAs: lists,
			Access: func(in resourcesIn) []tool.Access {
				var out []tool.Access
				for _, s := range h.asked(in.Server) {
					out = append(out, tool.Access{Tool: s.listAction()})
				}
				return out
			},
			Label: func(in resourcesIn) string {
				return strings.TrimSpace("list MCP resources " + printable(in.Server, 40) + " " + printable(in.Filter, 40))
			},
			Run: func(ctx context.Context, in resourcesIn) (tool.Result, error) { return h.listResources(ctx, in, keep) },
		}),
		tool.New(tool.Func[readIn]{
			Name: "mcp_read", Description: readWords, Risk: tool.Medium, JudgedAs: reads,
			Access: func(in readIn) []tool.Access {
				if s := h.server(in.Server); s != nil {
					return []tool.Access{{Tool: s.readAction(), Detail: in.URI}}
				}
				return nil
			},
			Label: func(in readIn) string {
				return fmt.Sprintf("read %s of %s", printable(in.URI, 80), printable(in.Server, 40))
			},
			Run: func(ctx context.Context, in readIn) (tool.Result, error) { return h.readResource(ctx, in, keep) },
		}),
	}
}

// asked returns the servers that a name means: all for "", none for an unknown name.
func (h *Hub) asked(name string) []*server {
	if name == "" {
		return h.servers
	}
	if s := h.server(name); s != nil {
		return []*server{s}
	}
	return nil
}

func (h *Hub) unknown(name string) tool.Result {
	var names []string
	for _, s := range h.servers {
		names = append(names, s.Name)
	}
	return tool.Fail(fmt.Sprintf("There is no MCP server %s. There are: %s", printable(name, 60), strings.Join(names, ", ")))
}

func (h *Hub) listResources(ctx context.Context, in resourcesIn, keep tool.Keep) (tool.Result, error) {
	servers := h.asked(in.Server)
	if len(servers) == 0 {
		return h.unknown(in.Server), nil
	}
	parts := make([]string, len(servers))
	var group sync.WaitGroup
	for i, s := range servers {
		group.Go(func() { parts[i] = s.resourceLines(ctx, strings.ToLower(in.Filter)) })
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	text := strings.TrimSpace(strings.Join(parts, ""))
	if text == "" {
		text = "There are no resources."
		if in.Filter != "" {
			text = fmt.Sprintf("There are no resources with %q in them.", in.Filter)
		}
		return tool.OK(text), nil
	}
	return tool.From("mcp servers", tool.Clip(ctx, text, tool.Head, keep)), nil
}

// resource is one of a server's resources, or a template for some.
type resource struct{ uri, name, media, about string }

// resourceList lists one server's resources, templates last.
func (s *server) resourceList(ctx context.Context) (out []resource, failed string, err error) {
	add := func(r resource) {
		if len(out) < mostResources {
			out = append(out, r)
		}
	}
	failed, err = s.do(ctx, func(ctx context.Context, l *live) error {
		if caps := l.session.InitializeResult().Capabilities; caps == nil || caps.Resources == nil {
			return nil
		}
		if err := pages(func(cursor string) (string, error) {
			res, err := l.session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return "", err
			}
			for _, r := range res.Resources {
				if r != nil {
					add(resource{r.URI, r.Name, r.MIMEType, r.Description})
				}
			}
			return res.NextCursor, nil
		}); err != nil {
			return err
		}
		return pages(func(cursor string) (string, error) {
			res, err := l.session.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
			if err != nil {
				return "", err
			}
			for _, r := range res.ResourceTemplates {
				if r != nil {
					add(resource{r.URITemplate, r.Name, r.MIMEType, r.Description})
				}
			}
			return res.NextCursor, nil
		})
	})
	return out, failed, err
}

// Resources returns the addresses of the servers' resources, and the address
// templates. It leaves out servers that do not answer.
func (h *Hub) Resources(ctx context.Context) (out []string) {
	h.Start()
	h.settle(ctx)
	for _, s := range h.servers {
		list, _, _ := s.resourceList(ctx)
		for _, r := range list {
			out = append(out, printable(r.uri, 500))
		}
	}
	return out
}

// resourceLines lists one server's resources for a model, or says why it cannot.
func (s *server) resourceLines(ctx context.Context, filter string) string {
	list, failed, err := s.resourceList(ctx)
	if err != nil {
		return ""
	}
	var lines []string
	for _, r := range list {
		line := printable(r.uri, 500)
		if name := printable(r.name, 100); name != "" {
			line += " (" + name + ")"
		}
		if media := printable(r.media, 60); media != "" {
			line += " " + media
		}
		if about := printable(r.about, 300); about != "" {
			line += ": " + about
		}
		if strings.Contains(strings.ToLower(line), filter) {
			lines = append(lines, line)
		}
	}
	if failed != "" {
		lines = append(lines, failed)
	}
	if len(lines) == 0 {
		return ""
	}
	return s.Name + ":\n" + strings.Join(lines, "\n") + "\n\n"
}

// pages reads a list to its end, within a limit. A list that the server does not support counts as empty.
func pages(page func(cursor string) (string, error)) error {
	cursor, seen := "", map[string]bool{}
	for range listPages {
		next, err := page(cursor)
		if isCode(err, jsonrpc.CodeMethodNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if next == "" || seen[next] {
			return nil
		}
		seen[next] = true
		cursor = next
	}
	return nil
}

func (h *Hub) readResource(ctx context.Context, in readIn, keep tool.Keep) (tool.Result, error) {
	s := h.server(in.Server)
	if s == nil {
		return h.unknown(in.Server), nil
	}
	var res *sdk.ReadResourceResult
	watched := ""
	s.resourceRead(in.URI) // later changes are news
	failed, err := s.do(ctx, func(ctx context.Context, l *live) (err error) {
		if in.Watch != nil { // before it is read, so that no change is missed
			watched = s.watchResource(ctx, l, in.URI, *in.Watch)
		}
		res, err = l.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: in.URI})
		return err
	})
	switch {
	case err != nil:
		return tool.Result{}, err
	case failed != "":
		return s.failure(failed), nil
	}
	var a answer
	for _, c := range res.Contents {
		a.resource(c)
	}
	if watched != "" {
		a.say("[%s]", watched)
	}
	return a.result(ctx, s.source(), keep), nil
}
