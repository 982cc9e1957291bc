// Command chorus puts AI agents where people talk. This package only reads the
// command line and hands over; one file a subcommand.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/helptext"
	"chorus/internal/app"
	"chorus/internal/markdown"
	"chorus/internal/notice"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/sandbox/process"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl"
	"chorus/internal/usage"
)

func main() {
	isolate.InsideSandbox(os.Args[1:])       // a sandbox may start us as its process 1
	if os.Getenv("CHORUS_TRACEABLE") == "" { // a debugger needs it
		_ = process.KeepPrivate() // where it is not possible everything else still works
	}
	setHeapGrowth(300, 110)
	os.Exit(Main(os.Args[1:]))
}

// setHeapGrowth says by how many per cent the heap may grow before it is collected, unless somebody else has. Starting takes a few megabytes, most
// of which are garbage afterwards: the first collection may come late, when a run has begun, and in a short command never. From it on the
// heap is kept small.
func setHeapGrowth(first, later int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(first)
	gone := new(struct{ _ *int }) // with a pointer: those without share their memory with others
	runtime.AddCleanup(gone, func(percent int) { debug.SetGCPercent(percent) }, later)
}

// Main runs one command line and returns the exit code.
func Main(args []string) int {
	c := &program{console: repl.Standard(), getenv: os.Getenv}
	return c.run(args)
}

// program is what the subcommands share.
type program struct {
	console repl.Console
	getenv  func(string) string
	home    string
	json    bool
	exit    int
	begun   bool // the command line was understood
	theme   string
	themed  bool // the console has the theme that was chosen
	server  serverOptions
	notices notice.Board            // what a terminal on a server should know of the connection
	wanted  func(group string) bool // which groups are made whole; nil: all
	sweep   time.Duration           // between looks at what other processes did; 0: as the engine likes it. Stories make it long
}

// exitError carries an exit code; what there was to say has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// exitWith ends with a code; 0 is no error.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return exitError(code)
}

func (c *program) run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c.wanted = func(group string) bool { return slices.Contains(args, group) }
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.console.In)
	root.SetOut(c.out())
	root.SetErr(c.errors())
	err := root.ExecuteContext(operation.WithProgress(ctx, progress(c.console.Err, time.Now)))
	var code exitError
	var mistake *usage.Error
	var word string
	if err != nil && !c.begun && !errors.As(err, &mistake) {
		if _, no := fmt.Sscanf(err.Error(), "unknown command %q", &word); no == nil { // the library's words
			err = cli.UnknownCommand(root, word)
		}
	}
	switch {
	case err == nil:
		return c.exit
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &mistake) || !c.begun:
		c.complain(err, operation.Invalid, wantsJSON(args))
		return repl.ExitUsage
	default:
		c.complain(err, operation.KindOf(err), wantsJSON(args))
		return repl.ExitFailed
	}
}

// wantsJSON reports whether a command line asks for JSON; it need not be one that was understood.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// failure is an error as a script reads it: the last line on standard error.
type failure struct {
	Error string         `json:"error"`
	Kind  operation.Kind `json:"kind"`
}

// complain says why a command failed.
func (c *program) complain(err error, kind operation.Kind, asJSON bool) {
	words := cli.Hint(operations.All().Words(operation.InCLI, err.Error()))
	if !asJSON {
		c.warn(words)
		return
	}
	enc := json.NewEncoder(c.console.Err)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(failure{markdown.Clean(words), kind}) // nobody is left to be told
}

// warn says something on standard error, broken between words where a terminal is too narrow.
func (c *program) warn(words string) {
	words = "chorus: " + markdown.Clean(words)
	if c.console.ErrTTY {
		words = fitted(words, c.console.Width()-1)
	}
	fmt.Fprintln(c.console.Err, words)
}

// fitted breaks lines between words so that they fit. What is indented, as a list or an example, stays so; a word is never broken, since it may be
// an address.
func fitted(words string, width int) string {
	lines := strings.Split(words, "\n")
	for i, line := range lines {
		if markdown.Width(line) <= width {
			continue
		}
		pad := line[:len(line)-len(strings.TrimLeft(line, " "))]
		lines[i] = pad + strings.Join(text.WrapWords(line, width-len(pad), markdown.Width), "\n"+pad)
	}
	return strings.Join(lines, "\n")
}

func (c *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "chorus",
		Short: "Agents that do real work where people already talk",
		Long: `Chorus puts AI agents where people already talk and lets them do real work
there, under rules. Nothing said is lost: kill it at any moment and continue.

Without a key it uses a built-in offline model, so you can look around.`,
		Example: `  chorus chat                                   talk to an agent about this directory
  chorus run "what does this repository do?"    run one prompt, then exit
  chorus thread list                            list your conversations
  chorus permit explain 'git push && rm -rf x'  show what a command would be allowed to do`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVar(&c.home, "home", "", "home folder (default $CHORUS_HOME or ~/.chorus)")
	c.themeFlag(root)
	helptext.Fit(root, c.width())
	root.AddCommand(c.approvalsCommand(), c.acpCommand())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usage.Error{Err: fmt.Errorf("%w\nsee `%s --help`", err, cmd.CommandPath())}
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		c.begun = true
		return c.checkTheme()
	}
	root.AddCommand(c.serveCommand(), c.runCommand(), c.chatCommand(), c.threadCommand(), c.agentCommand(), c.modelsCommand(), c.contextCommand(), c.permitCommand(), c.auditCommand(),
		c.toolCommand(), c.costCommand(), c.importCommand(), c.configCommand(), c.doctorCommand(), c.backupCommand(), c.restoreCommand(), c.migrateCommand(), c.simCommand(), c.tokenCommand(), c.scheduleCommand(), c.memoryCommand(), c.hookCommand(), c.projectCommand(), c.repoCommand(), c.gitCommand(), c.taskCommand(), c.workCommand(), c.callCommand(), c.workerCommand(), c.processCommand(), c.keepCommand(), c.mcpCommand(), c.skillCommand(), c.versionCommand(),
		c.sampleCommand(), c.docsCommand(), c.initCommand(), c.completionCommand(), c.manCommand())
	c.commands().AddAll(root, operations.All(), c.wanted)
	arrange(root)
	return root
}

// open opens the home.
func (c *program) open(ctx context.Context) (*app.App, error) {
	o := app.Options{Env: c.getenv, Home: c.home, Version: version, Warn: c.warn, Sweep: c.sweep}
	injectFaults(&o)
	a, err := app.Open(ctx, o)
	if err == nil {
		c.inTheme(a.Shared.Theme)
	}
	return a, err
}

// with opens the home, does something and closes it.
func (c *program) with(ctx context.Context, do func(*app.App) error) error {
	if c.remote() {
		return &usage.Error{Err: errors.New("this works only on this machine's home; leave out --server, or run it on the server's machine")}
	}
	a, err := c.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(a), a.Close())
}

// out is where commands print. What others wrote (titles, messages, names of files) is among
// it, so nothing in it steers a terminal.
func (c *program) out() io.Writer {
	if !c.console.OutTTY {
		return c.console.Out
	}
	return markdown.NewCleaner(c.console.Out, false)
}

// width is that of the terminal that commands print on; 0: they print somewhere else.
func (c *program) width() int {
	if !c.console.OutTTY {
		return 0
	}
	return c.console.Width()
}

// columns is where commands print tables.
func (c *program) columns() *cli.Columns { return cli.NewColumns(c.out(), c.width()) }

// view is where commands show what came of operations.
func (c *program) view() cli.View {
	return cli.View{Out: c.out(), Err: c.errors(), Server: c.server.url, Width: c.width()}
}

// styled is out for texts that bring their own colours.
func (c *program) styled() io.Writer {
	if !c.console.OutTTY {
		return c.console.Out
	}
	return markdown.NewCleaner(c.console.Out, true)
}

// errors is where commands complain.
func (c *program) errors() io.Writer {
	if !c.console.ErrTTY {
		return c.console.Err
	}
	return markdown.NewCleaner(c.console.Err, false)
}

// jsonFlag adds --json to a command that prints a table.
func (c *program) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	return cmd
}

// exactly is cobra.ExactArgs with an error that shows the use.
func exactly(n int) cobra.PositionalArgs { return between(n, n) }

// between is cobra.RangeArgs, likewise.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		return &usage.Error{Err: fmt.Errorf("usage: %s", cmd.UseLine())}
	}
}

// anyNumber is more than anybody types.
const anyNumber = 1 << 20

// onlySubcommands is for commands that only hold others.
func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usage.Error{Err: cli.UnknownCommand(cmd, args[0])}
	}
	return cmd.Help()
}

func (c *program) printJSON(v any) error { return cli.PrintJSON(c.out(), v) }

// nonNil makes an empty list print as [] and not as null.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
