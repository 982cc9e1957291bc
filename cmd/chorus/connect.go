package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/client"
	"chorus/internal/notice"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/usage"
)

// serverOptions name the server that carries out operations, if it is not the local home.
type serverOptions struct {
	url       string
	tokenFile string
}

// serverFlags adds the flags for a server to a command and its subcommands.
func (c *program) serverFlags(cmd *cobra.Command) *cobra.Command {
	f := cmd.PersistentFlags()
	f.StringVar(&c.server.url, "server", "", "use this server instead of the local home, for example http://127.0.0.1:8420")
	f.StringVar(&c.server.tokenFile, "token-file", "", "with --server: file with the token (default: $CHORUS_TOKEN, or the home's own for a server on this machine)")
	return cmd
}

// remote reports whether a server carries out the operations.
func (c *program) remote() bool { return c.server.url != "" }

// group adds the operations of a group to its command, and the flags for a server. It builds only the group that runs, because building
// all of them slows down every start.
func (c *program) group(cmd *cobra.Command, override func(*cli.Commands)) *cobra.Command {
	return c.build(c.serverFlags(cmd), override)
}

// addOperations is like group, for a command whose own subcommands cannot use a server.
func (c *program) addOperations(cmd *cobra.Command, override func(*cli.Commands)) *cobra.Command {
	own := slices.Clone(cmd.Commands()) // which sorts its own list
	c.build(cmd, override)
	for _, sub := range cmd.Commands() {
		if !slices.Contains(own, sub) {
			c.serverFlags(sub)
		}
	}
	return cmd
}

func (c *program) build(cmd *cobra.Command, override func(*cli.Commands)) *cobra.Command {
	if c.wanted != nil && !c.wanted(cmd.Name()) {
		return cmd
	}
	commands := c.commands()
	override(commands)
	return commands.AddTo(cmd, operations.All())
}

func (c *program) commands() *cli.Commands {
	return cli.New(cli.Options{Connect: c.connect, Usage: func(err error) error { return &usage.Error{Err: err} }, JSON: &c.json,
		Groups: operations.Groups(), Prefixes: []string{"session", "approval"}, Width: c.width, Flags: func(cmd *cobra.Command) { c.serverFlags(cmd) }})
}

// connect opens the local home, or the server that was named.
func (c *program) connect(ctx context.Context) (cli.Connection, error) {
	if c.remote() {
		at, err := c.dial()
		if err != nil {
			return cli.Connection{}, err
		}
		return cli.Connection{Executor: at, Server: c.server.url, Close: func() error { at.Close(); return nil }}, nil
	}
	a, err := c.open(ctx)
	if err != nil {
		return cli.Connection{}, err
	}
	return cli.Connection{Executor: a.Service.GuestOperations(), Caller: a.Service.LocalCaller(), Close: a.Close}, nil
}

// execute runs do on the local home, or on the server that was named.
func (c *program) execute(ctx context.Context, do func(to cli.Connection) error) error {
	to, err := c.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(to), to.Close())
}

// dial creates the client of the server that was named. It sends nothing.
func (c *program) dial() (*client.Client, error) {
	url, err := client.ParseURL(c.server.url)
	if err != nil {
		return nil, &usage.Error{Err: err}
	}
	token, err := c.token(client.Loopback(url.Hostname()))
	if err != nil {
		return nil, err
	}
	if url.Scheme == "http" && !client.Loopback(url.Hostname()) {
		c.warn("the token and every message are sent unencrypted to " + url.Host + "; use https to protect them")
	}
	made, err := client.New(client.Options{URL: url.String(), Token: token, Away: func(away bool) {
		if away {
			c.notices.Post(notice.Notice{Text: "the server does not answer; retrying for two minutes, and nothing you said is lost", Bad: true})
		} else {
			c.notices.Post(notice.Notice{Text: "the server answers again"})
		}
	}})
	if err != nil {
		return nil, &usage.Error{Err: err}
	}
	return made, nil
}

// token finds the token for the server. The home's own is only used for servers on this machine.
func (c *program) token(here bool) (string, error) {
	file := c.server.tokenFile
	switch {
	case file != "":
	case c.getenv("CHORUS_TOKEN") != "":
		return strings.TrimSpace(c.getenv("CHORUS_TOKEN")), nil
	case c.getenv("CHORUS_TOKEN_FILE") != "":
		file = c.getenv("CHORUS_TOKEN_FILE")
	case !here:
		return "", &usage.Error{Err: errors.New("there is no token for this server; set CHORUS_TOKEN or use --token-file (make one there with `chorus token create`)")}
	default:
		data, err := os.ReadFile(filepath.Join(c.homeDir(), "token"))
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil // the server reports what is missing
		}
		return strings.TrimSpace(string(data)), err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// homeDir is the path of the home, opened or not.
func (c *program) homeDir() string {
	for _, dir := range []string{c.home, c.getenv("CHORUS_HOME")} {
		if dir != "" {
			return dir
		}
	}
	return filepath.Join(c.getenv("HOME"), ".chorus")
}

// wrongUse turns an invalid input into a command line error.
func wrongUse(err error) error {
	if err != nil && operation.KindOf(err) == operation.Invalid {
		return &usage.Error{Err: err}
	}
	return err
}
