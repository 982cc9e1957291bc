package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/agent"
	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/permit"
	"chorus/internal/provider"
	"chorus/internal/runsetup"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/service"
	"chorus/internal/transport/repl"
	"chorus/internal/transport/repl/local"
	"chorus/internal/usage"
)

// talkFlags adds the flags that run and chat share.
func (c *program) talkFlags(cmd *cobra.Command) *runsetup.SessionOptions {
	o := &runsetup.SessionOptions{}
	c.serverFlags(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.Dir, "repo", "r", "", "directory to work in (default: here)")
	f.StringVarP(&o.Agent, "agent", "a", "", "agent to talk to (default "+chat.DefaultAgent+")")
	f.StringVarP(&o.Provider, "provider", "p", "", "model provider: "+strings.Join(provider.Providers(), ", ")+", or a vendor of the config")
	f.StringVarP(&o.Model, "model", "m", "", "model, as provider/model or a bare name (default: depends on the keys that are set)")
	f.BoolVarP(&o.Yes, "yes", "y", false, "approve everything that is asked for; what a rule denies stays denied")
	f.StringVar(&o.Profile, "permissions", "", "permission profile: open, standard, guarded, locked, one of the configuration's own, or a file of rules (default standard)")
	f.StringVar(&o.Sandbox, "sandbox", "", "where commands run: "+strings.Join(isolate.Sandboxes(), ", ")+" (default: as configured, else auto: the strongest that works)")
	f.StringVarP(&o.File, "session", "s", "", "session file to create or continue")
	f.StringVar(&o.ID, "session-id", "", "id of the session to continue")
	f.BoolVarP(&o.Continue, "continue", "c", false, "continue the last session of this directory")
	f.StringArrayVar(&o.Attach, "attach", nil, "file or picture to send with the prompt; may be given more than once")
	f.StringVar(&o.ResumeMode, "resume-mode", "", "how much of an old session to include: full, last-N or summary (default full)")
	f.IntVar(&o.MaxSteps, "max-iterations", agent.DefaultMaxSteps, "maximum model calls per prompt; overrides maxToolDepth of the configuration")
	f.StringVar(&o.Mode, "mode", "", chat.ModeWords("or"))
	c.completeTalk(cmd)
	return o
}

func checkTalk(cmd *cobra.Command, o *runsetup.SessionOptions) error {
	if o.MaxSteps < 1 {
		return &usage.Error{Err: errors.New("--max-iterations must be 1 or more")}
	}
	if len(o.Attach) > 0 && cmd.Name() == "chat" && cmd.Flags().NArg() == 0 {
		return &usage.Error{Err: errors.New("--attach needs a prompt: chorus chat --attach FILE \"…\"")}
	}
	if o.Continue && (o.ID != "" || o.File != "") {
		return &usage.Error{Err: errors.New("--continue cannot be combined with --session or --session-id")}
	}
	if !cmd.Flags().Changed("max-iterations") {
		o.MaxSteps = 0 // use the configured value
	}
	return nil
}

func (c *program) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [PROMPT]",
		Short: "Run one prompt in this directory, then exit",
		Long: `Runs one prompt and exits. The answer goes to standard output, progress to standard error.
The prompt may also come from standard input. With --session-id and no prompt it continues
an interrupted run.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 step limit reached, 4 approval needed but no
terminal to ask on, 130 interrupted.`,
		Example: `  chorus run "which tests are missing for internal/chat?"
  chorus run --mode plan "add a retry to the uploader"
  git diff | chorus run "review this change"
  chorus run -y --json "make the tests pass" > events.jsonl
  chorus run --attach shot.png "what is wrong on this page?"
  chorus run --continue "and the other one?"  in the last session of this directory
  chorus run --session-id 01k…               continue an interrupted run`,
		Args: cobra.ArbitraryArgs,
	}
	o := c.talkFlags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print events on standard output, one per line")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		defer func() {
			if err != nil && *asJSON {
				err = errors.Join(err, c.failJSON(err))
			}
		}()
		if err := checkTalk(cmd, o); err != nil {
			return err
		}
		prompt := strings.TrimSpace(strings.Join(args, " "))
		if !c.console.InTTY {
			// Piped input is part of the prompt.
			data, err := io.ReadAll(io.LimitReader(c.console.In, maxPrompt+1))
			if err != nil {
				return fmt.Errorf("read the prompt from standard input: %w", err)
			}
			if len(data) > maxPrompt {
				return &usage.Error{Err: fmt.Errorf("the prompt on standard input is longer than %d MB; save it to a file and refer to the file", maxPrompt>>20)}
			}
			if piped := strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD")); piped != "" {
				prompt = strings.TrimSpace(prompt + "\n\n" + piped)
			}
		}
		if prompt == "" && o.ID == "" && o.File == "" && !o.Continue {
			return &usage.Error{Err: errors.New("no prompt; use: chorus run \"…\"")}
		}
		o.Once, o.CanAsk, o.Warn = true, c.console.CanAsk(), c.warn
		if c.remote() {
			return c.runOnServer(cmd.Context(), *o, prompt, *asJSON)
		}
		go permit.Prepare(cmp.Or(o.Profile, service.StandardProfile))
		return c.with(cmd.Context(), func(a *app.App) error { return c.runOnce(cmd.Context(), a, *o, prompt, *asJSON) })
	}
	return cmd
}

// attach attaches files to the next prompt.
func attach(ctx context.Context, s interface {
	Attach(ctx context.Context, name string, file io.Reader) error
}, paths []string) error {
	for _, path := range paths {
		err := func() error {
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
				return errors.Join(err, fmt.Errorf("%s is not a file", path))
			}
			return s.Attach(ctx, filepath.Base(path), file)
		}()
		if err != nil {
			return &usage.Error{Err: fmt.Errorf("--attach: %w", err)}
		}
	}
	return nil
}

// failJSON tells a program that reads events why no run started or ended.
func (c *program) failJSON(err error) error {
	if _, ok := errors.AsType[exitError](err); ok {
		return nil // the run's own end was already written
	}
	data, err := feed.Encode(feed.Error{Head: feed.Head{Type: feed.TypeError}, Message: err.Error(), Kind: "setup", StopReason: "error"})
	if err == nil {
		_, err = c.console.Out.Write(append(data, '\n'))
	}
	return err
}

// maxPrompt is more than any model can read.
const maxPrompt = 4 << 20

func (c *program) runOnce(ctx context.Context, a *app.App, o runsetup.SessionOptions, prompt string, asJSON bool) error {
	if err := c.latest(ctx, a, &o); err != nil {
		return err
	}
	s, err := a.Sessions.OpenSession(ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := attach(ctx, s, o.Attach); err != nil {
		return err
	}
	ro := repl.RunOptions{Prompt: prompt, After: s.Start, Console: c.console}
	if asJSON {
		ro.JSON = c.encoder(a, s)
	}
	if prompt == "" {
		if !s.GoOn() {
			return fmt.Errorf("session %s has nothing to continue; give it a prompt", s.ID())
		}
		ro.After = s.Unfinished()
	}
	code, stopped, err := follow(ctx, s, ro)
	if err != nil {
		return err
	}
	if stopped {
		more := ` "…"` // a run that was stopped is over
		if s.Open(context.WithoutCancel(ctx)) {
			more = ""
		}
		fmt.Fprintf(c.console.Err, "continue with: chorus run --session-id %s%s\n", s.ID(), more)
	}
	return exitWith(code)
}

// follow shows a run to its end and returns the program's exit code. stopped means that it was interrupted and can be continued.
func follow(ctx context.Context, s repl.Session, ro repl.RunOptions) (code int, stopped bool, err error) {
	interrupts, over := untilTheEnd()
	defer over()
	ro.Interrupts = interrupts
	code, err = repl.Run(ctx, s, ro)
	return code, code == repl.ExitInterrupted || ctx.Err() != nil, err
}

// untilTheEnd handles Ctrl-C for the life of the program. After over, Ctrl-C exits at once with the code of an
// interrupted run, even during cleanup: everything said is already stored.
func untilTheEnd() (interrupts <-chan os.Signal, over func()) {
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt)
	return ch, func() {
		go func() {
			<-ch
			os.Exit(repl.ExitInterrupted)
		}()
	}
}

// encoder writes items as the objects that every client sees.
func (c *program) encoder(a *app.App, s *local.Session) func(io.Writer, repl.Item) error {
	calls := feed.Calls{}
	o := feed.Options{Label: s.Label, Args: calls.Args, Model: s.Info().Model}
	return func(w io.Writer, item repl.Item) error {
		var items []feed.Item
		if item.Event != nil {
			calls.Note(*item.Event)
			items = feed.Translate(*item.Event, o)
		} else {
			items = []feed.Item{feed.Live(s.Thread(), item.Live)}
		}
		for _, it := range items {
			data, err := feed.Encode(it)
			if err != nil {
				return err
			}
			if _, err := w.Write(append(data, '\n')); err != nil {
				return err
			}
		}
		return nil
	}
}
