package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/clipboard"
	"chorus/internal/datadir"
	"chorus/internal/permit"
	"chorus/internal/provider"
	"chorus/internal/runsetup"
	"chorus/internal/service"
	"chorus/internal/transport/repl"
	"chorus/internal/transport/repl/history"
	"chorus/internal/usage"
)

func (c *program) chatCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "chat [PROMPT]",
		Short: "Chat with an agent about this directory",
		Long: `Starts a conversation in the terminal. Type while the agent works to steer it. Esc or
Ctrl-C stops the run; Ctrl-C twice or Ctrl-D leaves. /help lists the commands.

You may kill it at any time: chorus chat --session-id ID continues with every word.`,
		Example: `  chorus chat
  chorus chat -m anthropic/claude-sonnet-4-5
  chorus chat --mode review "look at the last commit"
  chorus chat --continue                     the last session of this directory
  chorus chat --resume                       choose a session of this directory
  chorus chat --session-id 01k…`,
	}
	o := c.talkFlags(cmd)
	choose := cmd.Flags().Bool("resume", false, "choose the session to continue from a list")
	plain := cmd.Flags().Bool("plain", false, "print line by line for a screen reader: no redrawing, no colours, no frames")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *plain {
			c.console = c.console.InPlain()
		}
		if err := checkTalk(cmd, o); err != nil {
			return err
		}
		if *choose {
			if err := c.checkChoice(o, args); err != nil {
				return err
			}
		}
		o.CanAsk, o.Warn = c.console.Asks(), c.warn
		ctx := cmd.Context()
		if c.remote() {
			return c.chatOnServer(ctx, *o, strings.Join(args, " "), *choose)
		}
		go permit.Prepare(cmp.Or(o.Profile, service.StandardProfile))
		return c.with(ctx, func(a *app.App) error {
			if err := c.latest(ctx, a, o); err != nil {
				return err
			}
			return c.again(o, strings.Join(args, " "), func(prompt, draft string) error {
				return c.chatOnce(ctx, a, *o, repl.ChatOptions{Prompt: prompt, Draft: draft, Pick: *choose && o.ID == ""})
			})
		})
	}
	return cmd
}

// latest finds the session for --continue.
func (c *program) latest(ctx context.Context, a *app.App, o *runsetup.SessionOptions) (err error) {
	if !o.Continue {
		return nil
	}
	if o.ID, err = a.Sessions.Latest(ctx, o.Dir, o.Agent); err == nil && o.ID == "" {
		return errors.New("this directory has no session to continue; leave out --continue to start one")
	}
	return err
}

// editor is the person's editor or, if they named none, one that most machines have; "": none.
func (c *program) editor() string {
	if named := cmp.Or(c.getenv("VISUAL"), c.getenv("EDITOR")); named != "" {
		return named
	}
	for _, usual := range []string{"nano", "vim", "vi"} {
		if _, err := exec.LookPath(usual); err == nil {
			return usual
		}
	}
	return ""
}

// chatOptions adds what every chat needs: the terminal, the editor, and earlier input, from this place and elsewhere.
func (c *program) chatOptions(place string, o repl.ChatOptions) repl.ChatOptions {
	o.Console = c.console
	o.Editor, o.Clipboard = c.editor(), clipboard.Image
	if !c.console.Interactive() {
		return o
	}
	kept := history.In(datadir.At(c.homeDir()).History())
	all := kept.Load()
	o.History, o.Everywhere = history.Texts(all, place), history.Texts(all, "")
	o.Remember = func(input string) error { return kept.Add(place, input) }
	return o
}

// again runs chats, switching to another session whenever the person asks for one.
func (c *program) again(o *runsetup.SessionOptions, prompt string, chat func(prompt, draft string) error) error {
	draft := ""
	for {
		err := chat(prompt, draft)
		var other *repl.Resume
		if !errors.As(err, &other) {
			return err
		}
		if other.Theme != "" {
			c.console = c.console.WithTheme(other.Theme)
		}
		o.ID, o.File, o.ResumeMode, o.Attach, prompt, draft = other.ID, "", "", nil, "", other.Draft
	}
}

// checkChoice reports why --resume cannot offer a choice here.
func (c *program) checkChoice(o *runsetup.SessionOptions, args []string) error {
	switch {
	case o.Continue || o.ID != "" || o.File != "" || len(args) > 0:
		return &usage.Error{Err: errors.New("--resume cannot be combined with --continue, --session, --session-id or a prompt")}
	case !c.console.Asks():
		return &usage.Error{Err: errors.New("--resume needs a terminal; choose a session with --session-id, or continue the last one with --continue")}
	}
	return nil
}

func (c *program) chatOnce(ctx context.Context, a *app.App, o runsetup.SessionOptions, chat repl.ChatOptions) error {
	s, err := a.Sessions.OpenSession(ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := attach(ctx, s, o.Attach); err != nil {
		return err
	}
	s.GoOn()
	chat.Head, chat.Remarks, chat.KeepTheme = s.Start, s.Remarks(), keepTheme(a)
	chat.Hint = firstHint(s.Info(), s.Start)
	code, err := repl.Chat(ctx, s, c.chatOptions(s.Info().Dir, chat))
	if err != nil {
		return err
	}
	if s.Used() {
		fmt.Fprintf(c.console.Err, "continue with: chorus chat --session-id %s\n", s.ID())
	}
	return exitWith(code)
}

// firstHint is for somebody who talks to the offline guide and has not said anything yet; otherwise it is "".
func firstHint(info repl.Info, start int64) string {
	if info.Model != provider.Offline || start > 0 {
		return ""
	}
	return "No key is set, so a small offline guide answers, with real tools. Try: help"
}
