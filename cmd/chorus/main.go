// Command chorus puts AI agents where people talk. This package only parses the
// command line, with one file per subcommand.
package main

import (
	"context"
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
	if os.Getenv("CHORUS_TRACEABLE") == "" { // a debugger needs access
		_ = process.KeepPrivate() // everything else works without it
	}
	setHeapGrowth(300, 110)
	os.Exit(Main(os.Args[1:]))
}

// setHeapGrowth sets by how many percent the heap may grow before a collection, unless somebody else has set it. Starting allocates a few
// megabytes, mostly garbage. So the first collection may come late, after a run has started, and never in a short command. From then on the
// heap is kept small.
func setHeapGrowth(first, later int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(first)
	gone := new(struct{ _ *int }) // has a pointer, because values without pointers share their memory block with others
	runtime.AddCleanup(gone, func(percent int) { debug.SetGCPercent(percent) }, later)
}

// Main runs one command line and returns the exit code.
func Main(args []string) int {
	c := &program{console: repl.Standard(), getenv: os.Getenv}
	return c.run(args)
}

// program is the state that the subcommands share.
type program struct {
	console repl.Console
	getenv  func(string) string
	home    string
	json    bool
	exit    int
	begun   bool // the command line was parsed
	theme   string
	themed  bool // the console has the chosen theme
	server  serverOptions
	notices notice.Board            // remarks about the connection for a terminal on a server
	wanted  func(group string) bool // which groups to build in full; nil: all
	sweep   time.Duration           // between checks for work of other processes; 0: the engine's default. Stories make it long
}

// exitError is an exit code whose message was already printed.
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
	if slices.Equal(args, []string{"--version"}) { // the library's own flag would bring text/template into the program
		args = []string{"version"}
	}
	root.SetArgs(args)
	root.SetIn(c.console.In)
	root.SetOut(c.out())
	root.SetErr(c.errors())
	err := root.ExecuteContext(operation.WithProgress(ctx, progress(c.console.Err, time.Now)))
	var code exitError
	var mistake *usage.Error
	var word string
	if err != nil && !c.begun && !errors.As(err, &mistake) {
		if _, no := fmt.Sscanf(err.Error(), "unknown command %q", &word); no == nil { // the library's wording
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

// wantsJSON reports whether a command line asks for JSON, even if it could not be parsed.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// failure is an error in JSON, the last line on standard error.
type failure struct {
	Error string         `json:"error"`
	Kind  operation.Kind `json:"kind"`
}

// complain prints why a command failed.
func (c *program) complain(err error, kind operation.Kind, asJSON bool) {
	words := cli.Hint(operations.All().Words(operation.InCLI, err.Error()))
	if !asJSON {
		c.warn(words)
		return
	}
	_ = text.WriteJSON(c.console.Err, failure{markdown.Clean(words), kind}) // nobody is left to report an error to
}

// warn prints a warning on standard error, wrapped between words if the terminal is too narrow.
func (c *program) warn(words string) {
	words = "chorus: " + markdown.Clean(words)
	if c.console.ErrTTY {
		words = fitted(words, c.console.Width()-1)
	}
	fmt.Fprintln(c.console.Err, words)
}

// fitted wraps lines between words. Indented lines, as in a list or an example, keep their indentation. A word is never broken, because it
// may be an address.
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

// with opens the home, calls do and closes the home.
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

// out is where commands print. It contains text of others (titles, messages, file names),
// so control sequences are removed.
func (c *program) out() io.Writer {
	if !c.console.OutTTY {
		return c.console.Out
	}
	return markdown.NewCleaner(c.console.Out, false)
}

// width is the width of the terminal that commands print on; 0: not a terminal.
func (c *program) width() int {
	if !c.console.OutTTY {
		return 0
	}
	return c.console.Width()
}

// columns is where commands print tables.
func (c *program) columns() *cli.Columns { return cli.NewColumns(c.out(), c.width()) }

// view is where commands print the results of operations.
func (c *program) view() cli.View {
	return cli.View{Out: c.out(), Err: c.errors(), Server: c.server.url, Width: c.width()}
}

// styled is out for text that brings its own colours.
func (c *program) styled() io.Writer {
	if !c.console.OutTTY {
		return c.console.Out
	}
	return markdown.NewCleaner(c.console.Out, true)
}

// errors is where commands print errors.
func (c *program) errors() io.Writer {
	if !c.console.ErrTTY {
		return c.console.Err
	}
	return markdown.NewCleaner(c.console.Err, false)
}

// jsonFlag adds --json to a command.
func (c *program) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	return cmd
}

// exactly is cobra.ExactArgs with an error that shows the usage.
func exactly(n int) cobra.PositionalArgs { return between(n, n) }

// between is cobra.RangeArgs with an error that shows the usage.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		return &usage.Error{Err: fmt.Errorf("usage: %s", cmd.UseLine())}
	}
}

// anyNumber is more arguments than anybody types.
const anyNumber = 1 << 20

// onlySubcommands runs commands that only have subcommands.
func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usage.Error{Err: cli.UnknownCommand(cmd, args[0])}
	}
	return cmd.Help()
}

func (c *program) printJSON(v any) error { return text.WriteIndentedJSON(c.out(), v, "") }

// nonNil makes an empty list print as [] instead of null.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
