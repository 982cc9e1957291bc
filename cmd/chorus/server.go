package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/client"
	"chorus/internal/command"
	"chorus/internal/usage"
)

// far is where orders go when they do not go to this machine's own home.
type far struct {
	server    string
	tokenFile string
}

// serverFlags lets a command, and those below it, speak to a server.
func (c *cli) serverFlags(cmd *cobra.Command) *cobra.Command {
	f := cmd.PersistentFlags()
	f.StringVar(&c.far.server, "server", "", "use this server instead of the local home, for example http://127.0.0.1:8420")
	f.StringVar(&c.far.tokenFile, "token-file", "", "with --server: file with the token (default: $CHORUS_TOKEN, and for a server of this machine the home's own)")
	return cmd
}

// remote reports whether orders go to a server.
func (c *cli) remote() bool { return c.far.server != "" }

// at does something with the server.
func (c *cli) at(do func(command.Service) error) error {
	service, err := c.connect()
	if err != nil {
		return err
	}
	defer service.Close()
	return do(command.Over(service))
}

// connect makes the client of the server that was named. Nothing is sent yet.
func (c *cli) connect() (*client.Client, error) {
	url, err := client.ParseURL(c.far.server)
	if err != nil {
		return nil, &usage.Error{Err: err}
	}
	token, err := c.token(client.Loopback(url.Hostname()))
	if err != nil {
		return nil, err
	}
	if url.Scheme == "http" && !client.Loopback(url.Hostname()) {
		c.warn("the token and everything that is said pass in the clear to " + url.Host + "; https would keep them")
	}
	made, err := client.New(client.Options{URL: url.String(), Token: token})
	if err != nil {
		return nil, &usage.Error{Err: err}
	}
	return made, nil
}

// token finds what opens the server. The home's own is only for servers of this machine.
func (c *cli) token(here bool) (string, error) {
	file := c.far.tokenFile
	switch {
	case file != "":
	case c.getenv("CHORUS_TOKEN") != "":
		return strings.TrimSpace(c.getenv("CHORUS_TOKEN")), nil
	case c.getenv("CHORUS_TOKEN_FILE") != "":
		file = c.getenv("CHORUS_TOKEN_FILE")
	case !here:
		return "", &usage.Error{Err: errors.New("there is no token for this server; give it in CHORUS_TOKEN or with --token-file, `chorus token create` there makes one")}
	default:
		data, err := os.ReadFile(filepath.Join(c.homeDir(), "token"))
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil // the server says what is missing
		}
		return strings.TrimSpace(string(data)), err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// homeDir is where the home lies, opened or not.
func (c *cli) homeDir() string {
	for _, dir := range []string{c.home, c.getenv("CHORUS_HOME")} {
		if dir != "" {
			return dir
		}
	}
	return filepath.Join(c.getenv("HOME"), ".chorus")
}

// whole reads every page of a list, up to most; 0: all of it.
func whole[T any](most int, page func(cursor string) (command.List[T], error)) ([]T, error) {
	out := []T{}
	for cursor := ""; ; {
		list, err := page(cursor)
		if err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
		if most > 0 && len(out) >= most {
			return out[:most], nil
		}
		if cursor = list.Next; cursor == "" {
			return out, nil
		}
	}
}

// farSession finds a session of the server by its id or a unique beginning of it.
func farSession(ctx context.Context, service command.Service, name string) (command.Session, error) {
	found, err := service.GetSession(ctx, command.Caller{}, name)
	if command.KindOf(err) != command.NotFound {
		return found, err
	}
	list, lerr := whole(0, func(cursor string) (command.List[command.Session], error) {
		return service.ListSessions(ctx, command.Caller{}, command.SessionQuery{Cursor: cursor, Limit: 200})
	})
	if lerr != nil {
		return found, lerr
	}
	matches := 0
	for _, one := range list {
		if name != "" && strings.HasPrefix(one.ID, strings.ToLower(name)) {
			found = one
			matches++
		}
	}
	switch matches {
	case 0:
		return command.Session{}, err
	case 1:
		return found, nil
	default:
		return command.Session{}, fmt.Errorf("%d sessions begin with %s; give more of the id", matches, name)
	}
}
