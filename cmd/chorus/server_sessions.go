package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"chorus/internal/client"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl"
	"chorus/internal/transport/repl/remote"
	"chorus/internal/usage"
)

// serverSessionOptions converts the flags of run and chat for a server.
func (c *program) serverSessionOptions(o runsetup.SessionOptions) (remote.Options, error) {
	if o.File != "" {
		return remote.Options{}, &usage.Error{Err: errors.New("--session names a file on this machine; on a server use --session-id")}
	}
	out := remote.Options{ID: o.ID, Yes: o.Yes, Resume: operations.ResumeRequest{Provider: o.Provider, Model: o.Model, Mode: o.ResumeMode},
		New: operations.NewSession{WorkspacePath: o.Dir, Agent: o.Agent, Provider: o.Provider, Model: o.Model, Permissions: o.Profile, Sandbox: o.Sandbox,
			Mode: o.Mode, MaxIterations: o.MaxSteps}}
	url, err := client.ParseURL(c.server.url)
	if err != nil {
		return out, &usage.Error{Err: err}
	}
	if client.Loopback(url.Hostname()) && o.Agent == "" || o.Dir != "" && client.Loopback(url.Hostname()) {
		// A server on this machine sees the same files.
		if out.New.WorkspacePath, err = filepath.Abs(o.Dir); err != nil {
			return out, err
		}
	}
	return out, nil
}

// openOnServer creates a session on a server or opens an existing one; the start of its id is enough if it is unique. If nobody chose the
// directory and the token may not work here, the session gets its own folder.
func (c *program) openOnServer(ctx context.Context, to cli.Connection, o remote.Options, chosen bool) (*remote.Session, error) {
	if o.ID != "" {
		found, err := findSession(ctx, to, o.ID)
		if err != nil {
			return nil, err
		}
		o.ID = found.ID
	}
	s, err := remote.Open(ctx, to, to.Caller, o)
	if operation.KindOf(err) != operation.Forbidden || chosen || o.New.WorkspacePath == "" || o.ID != "" {
		return s, err
	}
	o.New.WorkspacePath = ""
	own, again := remote.Open(ctx, to, to.Caller, o)
	if again != nil {
		return s, err
	}
	c.warn("the session works in a folder of its own: " + err.Error())
	return own, nil
}

// latestOnServer is the last used session for --continue: of this folder, if the server has the same files, and of the chosen agent.
func latestOnServer(ctx context.Context, to cli.Connection, like operations.NewSession) (string, error) {
	list, err := operations.ListSessions.Call(ctx, to, to.Caller, operations.SessionQuery{Kind: "talk", Agent: like.Agent, Limit: 200})
	if err != nil {
		return "", err
	}
	latest := operations.Session{}
	for _, s := range list.Items {
		if s.Seq > 0 && (like.WorkspacePath == "" || s.WorkspacePath == like.WorkspacePath) && s.MovedAt.After(latest.MovedAt) {
			latest = s
		}
	}
	switch {
	case latest.ID != "":
		return latest.ID, nil
	case like.WorkspacePath == "":
		return "", errors.New("the server has no session to continue; leave out --continue to start one")
	}
	return "", errors.New("the server has no session of this directory to continue; leave out --continue to start one")
}

// openWithFiles opens the requested session and attaches the files for its next prompt.
func (c *program) openWithFiles(ctx context.Context, to cli.Connection, o runsetup.SessionOptions) (*remote.Session, error) {
	options, err := c.serverSessionOptions(o)
	if err == nil && o.Continue && o.ID == "" {
		options.ID, err = latestOnServer(ctx, to, options.New)
	}
	if err != nil {
		return nil, err
	}
	s, err := c.openOnServer(ctx, to, options, o.Dir != "")
	if err != nil {
		return nil, wrongUse(err)
	}
	return s, attach(ctx, s, o.Attach)
}

// runOnServer is the run command on a server.
func (c *program) runOnServer(ctx context.Context, o runsetup.SessionOptions, prompt string, asJSON bool) error {
	return c.execute(ctx, func(to cli.Connection) error {
		s, err := c.openWithFiles(ctx, to, o)
		if err != nil {
			return err
		}
		ro := repl.RunOptions{Prompt: prompt, After: s.Start(), Console: c.console}
		if asJSON {
			ro.JSON = writeLines
		}
		if prompt == "" {
			after, open := s.Unfinished()
			if !open {
				return fmt.Errorf("session %s has nothing to continue; give it a prompt", s.ID())
			}
			ro.After = after
		}
		code, stopped, err := follow(ctx, s, ro)
		if err != nil {
			return err
		}
		if stopped {
			fmt.Fprintf(c.console.Err, "continue with: chorus run --server %s --session-id %s \"…\"\n", c.server.url, s.ID())
		}
		return exitWith(code)
	})
}

// writeLines writes the objects of an item as they came.
func writeLines(w io.Writer, item repl.Item) error {
	for _, line := range item.Lines {
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// chatOnServer is the chat command on a server.
func (c *program) chatOnServer(ctx context.Context, o runsetup.SessionOptions, prompt string, choose bool) error {
	return c.execute(ctx, func(to cli.Connection) error {
		return c.again(&o, prompt, func(prompt, draft string) error {
			return c.chatOnceOnServer(ctx, to, o, repl.ChatOptions{Prompt: prompt, Draft: draft, Pick: choose && o.ID == ""})
		})
	})
}

func (c *program) chatOnceOnServer(ctx context.Context, to cli.Connection, o runsetup.SessionOptions, chat repl.ChatOptions) error {
	s, err := c.openWithFiles(ctx, to, o)
	if err != nil {
		return err
	}
	c.look() // the theme is set on this machine
	remarks, cancel := c.notices.Subscribe()
	defer cancel()
	chat.Head, chat.Hint, chat.Remarks = s.Start(), firstHint(s.Info(), s.Start()), remarks
	code, err := repl.Chat(ctx, s, c.chatOptions(c.server.url, chat))
	_ = s.Discard(ctx) // if it stays, it is only clutter
	if err != nil {
		return err
	}
	if s.Used() {
		fmt.Fprintf(c.console.Err, "continue with: chorus chat --server %s --session-id %s\n", c.server.url, s.ID())
	}
	return exitWith(code)
}
