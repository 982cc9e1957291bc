package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"chorus/internal/client"
	"chorus/internal/command"
	"chorus/internal/runsetup"
	"chorus/internal/transport/repl"
	"chorus/internal/transport/repl/remote"
	"chorus/internal/usage"
)

// farTalk makes of the flags of run and chat what a server is told.
func (c *cli) farTalk(o runsetup.SessionOptions) (remote.Options, error) {
	if o.File != "" {
		return remote.Options{}, &usage.Error{Err: errors.New("--session names a file of this machine, and the server has its own; go on by --session-id")}
	}
	out := remote.Options{ID: o.ID, Yes: o.Yes, Resume: command.Resume{Provider: o.Provider, Model: o.Model, Mode: o.ResumeMode},
		New: command.NewSession{WorkspacePath: o.Dir, Agent: o.Agent, Provider: o.Provider, Model: o.Model, Permissions: o.Profile, Sandbox: o.Sandbox,
			Mode: o.Mode, MaxIterations: o.MaxSteps}}
	url, err := client.ParseURL(c.far.server)
	if err != nil {
		return out, &usage.Error{Err: err}
	}
	if client.Loopback(url.Hostname()) && o.Agent == "" || o.Dir != "" && client.Loopback(url.Hostname()) {
		// A server of this machine sees the same files.
		if out.New.WorkspacePath, err = filepath.Abs(o.Dir); err != nil {
			return out, err
		}
	}
	return out, nil
}

// farOpen makes a session on a server or takes one up, of whose id a unique beginning is enough.
func farOpen(ctx context.Context, service command.Service, o remote.Options) (*remote.Session, error) {
	if o.ID != "" {
		found, err := farSession(ctx, service, o.ID)
		if err != nil {
			return nil, err
		}
		o.ID = found.ID
	}
	return remote.Open(ctx, service, command.Caller{}, o)
}

// farRun is run on a server.
func (c *cli) farRun(ctx context.Context, o runsetup.SessionOptions, prompt string, asJSON bool) error {
	return c.at(func(service command.Service) error {
		options, err := c.farTalk(o)
		if err != nil {
			return err
		}
		s, err := farOpen(ctx, service, options)
		if err != nil {
			return wrongUse(err)
		}
		ro := repl.RunOptions{Prompt: prompt, After: s.Start(), Console: c.console}
		if asJSON {
			ro.JSON = writeLines
		}
		if prompt == "" {
			after, open := s.Unfinished()
			if !open {
				return fmt.Errorf("session %s has nothing to go on with; give it a prompt", s.ID())
			}
			ro.After = after
		}
		interrupts, over := untilTheEnd()
		ro.Interrupts = interrupts
		code, err := repl.Run(ctx, s, ro)
		over()
		if err != nil {
			return err
		}
		if code == repl.ExitInterrupted || ctx.Err() != nil {
			fmt.Fprintf(c.console.Err, "go on with: chorus run --server %s --session-id %s \"…\"\n", c.far.server, s.ID())
		}
		if code != 0 {
			return exitError(code)
		}
		return nil
	})
}

// wrongUse makes a mistake in what was asked for one of the command line.
func wrongUse(err error) error {
	if command.KindOf(err) == command.Invalid {
		return &usage.Error{Err: err}
	}
	return err
}

// writeLines writes an item as the objects that it came as.
func writeLines(w io.Writer, item repl.Item) error {
	for _, line := range item.Lines {
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// farChat is chat on a server.
func (c *cli) farChat(ctx context.Context, o runsetup.SessionOptions, prompt string) error {
	return c.at(func(service command.Service) error {
		options, err := c.farTalk(o)
		if err != nil {
			return err
		}
		s, err := farOpen(ctx, service, options)
		if err != nil {
			return wrongUse(err)
		}
		code, err := repl.Chat(ctx, s, repl.ChatOptions{Prompt: prompt, Head: s.Start(), Console: c.console})
		if err != nil {
			return err
		}
		if s.Used() {
			fmt.Fprintf(c.console.Err, "go on with: chorus chat --server %s --session-id %s\n", c.far.server, s.ID())
		}
		if code != 0 {
			return exitError(code)
		}
		return nil
	})
}
