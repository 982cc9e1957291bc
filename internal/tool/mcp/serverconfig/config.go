// Package serverconfig reads how MCP servers are reached: the configuration format that many
// programs share, in its many spellings, and the file to which people add servers.
//
// It promises that a mistake in one server affects only that one and is named, that a Server never prints
// what may be secret, and that a file is replaced as a whole and readable only by its owner.
package serverconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"chorus/internal/text"
)

// How a server is reached.
const (
	Stdio = "stdio" // a process of ours
	HTTP  = "http"  // streamable HTTP
	SSE   = "sse"   // the older protocol over HTTP
)

// Defaults for a server whose configuration names no deadline.
const (
	DefaultStart = 30 * time.Second  // npx may have to fetch a package first
	DefaultCall  = 120 * time.Second // longer than most work takes, yet people still wait for it
	DefaultTask  = time.Hour         // a task may outlive its connection and take its time
)

// Server says how to reach one MCP server. Env and Headers may hold secrets, so a Server never prints them.
type Server struct {
	Name          string
	Type          string // Stdio, HTTP or SSE; "" is Stdio with a Command, and with a URL it is HTTP, then SSE as the second try
	Command       string
	Args          []string
	Env           map[string]string // all that a process gets besides what every program needs
	Dir           string            // where it runs; relative to the hub's directory
	URL           string
	Headers       map[string]string
	StartTimeout  time.Duration // DefaultStart if 0
	CallTimeout   time.Duration // DefaultCall if 0
	TaskTimeout   time.Duration // DefaultTask if 0
	Disabled      bool
	DisabledTools []string // by the server's names for them
	Hosts         []string // that its process may reach from its sandbox
	Sandbox       string   // "" or SandboxOff
	Workspace     bool     // named in a workspace's own file, which its agents can write
}

// SandboxOff is for a server whose process runs without a sandbox, as the person who configured it.
const SandboxOff = "off"

// String names the server and reveals nothing that it is given.
func (s Server) String() string {
	if s.Command != "" {
		return s.Name + " (" + s.Command + ")"
	}
	return s.Name + " (" + PlainURL(s.URL) + ")"
}

// GoString implements fmt.GoStringer without revealing secrets.
func (s Server) GoString() string { return "mcp.Server{" + s.String() + "}" }

// LogValue implements slog.LogValuer without revealing secrets.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Problem is something in a configuration that makes a server, or a part of it, unusable.
type Problem struct {
	Server string // "" if it is not about one server
	Text   string
}

// String returns one line for people.
func (p Problem) String() string {
	if p.Server == "" {
		return p.Text
	}
	return "MCP server " + p.Server + ": " + p.Text
}

const (
	largestConfig = 1 << 20
	mostServers   = 200
)

// ParseConfig parses the common {"mcpServers": {…}}, the bare map of servers, and the list
// [{"name": …}]. It replaces ${NAME} and ${NAME:-default} by what lookup (nil: the environment)
// returns. A server with a mistake is left out and named in a Problem. The error is for text that
// is no configuration at all. The servers are sorted by name.
func ParseConfig(data []byte, lookup func(string) (string, bool)) ([]Server, []Problem, error) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	if len(data) > largestConfig {
		return nil, nil, fmt.Errorf("the MCP configuration is larger than %d bytes", largestConfig)
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if len(data) == 0 {
		return nil, nil, errors.New(`the MCP configuration is empty: write {"mcpServers": {"name": {"command": "…"}}}`)
	}
	if err := syntaxOf(data); err != nil {
		return nil, nil, err
	}
	c := configReader{lookup: lookup, seen: map[string]bool{}}
	if data[0] == '[' {
		c.list(data)
	} else if err := c.object(data); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(c.servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return cmp.Compare(a.Server, b.Server) })
	return c.servers, c.problems, nil
}

func syntaxOf(data []byte) error {
	var any json.RawMessage
	err := json.Unmarshal(data, &any)
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := data[:min(max(bad.Offset, 0), int64(len(data)))]
		return fmt.Errorf("the MCP configuration is not JSON: line %d: %w", bytes.Count(before, []byte("\n"))+1, err)
	}
	return err
}

type configReader struct {
	lookup   func(string) (string, bool)
	seen     map[string]bool
	servers  []Server
	problems []Problem
}

func (c *configReader) problem(server, format string, args ...any) {
	c.problems = append(c.problems, Problem{server, fmt.Sprintf(format, args...)})
}

// wrappers are the keys that may contain the servers.
var wrappers = []string{"mcpServers", "mcp_servers", "servers", "mcp"}

func (c *configReader) object(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil {
		return errors.New(`the MCP configuration must be an object: {"mcpServers": {"name": {"command": "…"}}}`)
	}
	for _, key := range wrappers {
		inner := bytes.TrimSpace(fields[key])
		switch {
		case len(inner) == 0 || looksLikeServer(inner):
			continue
		case inner[0] == '[':
			c.list(inner)
			return nil
		case inner[0] == '{' && key == "mcp":
			return c.object(inner)
		case inner[0] == '{':
			c.table(inner)
			return nil
		case string(inner) == "null":
			return nil
		}
		return fmt.Errorf("%s must be an object of servers by name", key)
	}
	c.table(data)
	return nil
}

// looksLikeServer distinguishes a server that is called "mcp" from the key of that name.
func looksLikeServer(data []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return false
	}
	command, url := fields["command"], fields["url"]
	return len(command) > 0 && command[0] != '{' || len(url) > 0 && url[0] != '{'
}

func (c *configReader) table(data []byte) {
	var table map[string]json.RawMessage
	if json.Unmarshal(data, &table) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		c.server(name, table[name])
	}
}

func (c *configReader) list(data []byte) {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		return
	}
	for i, raw := range list {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(raw, &named) != nil || named.Name == "" {
			c.problem("", "number %d in the list of MCP servers has no name", i+1)
			continue
		}
		c.server(named.Name, raw)
	}
}

func (c *configReader) server(name string, raw json.RawMessage) {
	shown := text.Printable(name, 60)
	if strings.TrimSpace(name) == "" || text.Printable(name, 200) != name {
		c.problem(shown, "this is no name for a server")
		return
	}
	if c.seen[name] {
		c.problem(shown, "there are two of this name; the first one counts")
		return
	}
	if len(c.seen) == mostServers {
		c.problem(shown, "there are more than %d servers", mostServers)
		return
	}
	c.seen[name] = true
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		c.problem(shown, `it must be an object such as {"command": "npx", "args": ["…"]}`)
		return
	}
	r := fieldReader{fields: fields, lookup: c.lookup}
	s := r.server(name)
	if err := cmp.Or(r.err, s.check()); err != nil {
		c.problem(shown, "%v", err)
		return
	}
	c.servers = append(c.servers, s)
}

// check returns what is wrong with a parsed server.
func (s *Server) check() error {
	switch {
	case s.Command == "" && s.URL == "":
		return errors.New(`it has neither a "command" nor a "url"`)
	case s.Command != "" && s.URL != "":
		return errors.New(`it has both a "command" and a "url"; which one is meant?`)
	case s.Command == "" && s.Type == Stdio:
		return errors.New(`type stdio needs a "command"`)
	case s.Command != "" && s.Type != Stdio && s.Type != "":
		return fmt.Errorf("type %s needs a \"url\" instead of a command", s.Type)
	}
	if s.Sandbox != "" && s.Sandbox != SandboxOff {
		return fmt.Errorf("sandbox %q is not known: leave it out, or write \"off\" in your own configuration", text.Printable(s.Sandbox, 30))
	}
	for _, word := range append([]string{s.Command, s.Dir}, s.Args...) {
		if strings.ContainsRune(word, 0) {
			return errors.New("there is a zero byte in the command")
		}
	}
	for key, value := range s.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("%q is no environment variable", text.Printable(key, 40))
		}
	}
	if s.URL == "" {
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("its url is not of the form https://host/path")
	}
	for key, value := range s.Headers {
		if !isToken(key) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("%q is no HTTP header", text.Printable(key, 40))
		}
	}
	return nil
}

func isToken(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

// PlainURL returns an address without the parts that may be secret.
func PlainURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}
