// Package cli makes cobra commands of operations: positional arguments, flags, completion, --json, a table
// for people, and a confirmation before anything is destroyed.
//
// It promises that a command does the same in this home and on a server, because it only uses an executor. If
// a table or a sentence is not enough, an override typed by the operation takes over: Render, JSON, Prepare, Items.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/operation"
	"chorus/internal/suggest"
)

// Connection carries out the operations of one command.
type Connection struct {
	operation.Executor
	Caller operation.Caller
	Server string // the server's address; "": the home of this machine
	Close  func() error
}

// Options configure the commands.
type Options struct {
	// Connect opens the connection when a command runs.
	Connect func(ctx context.Context) (Connection, error)
	// Usage marks an error as a mistake in the command line.
	Usage func(error) error
	// JSON is set by the flag --json.
	JSON *bool
	// Flags adds the flags of every group, which say where the server is. May be nil.
	Flags func(*cobra.Command)
	// Groups describe commands with the same first word.
	Groups map[string]string
	// Prefixes are the nouns for which a unique prefix is enough, except to destroy.
	Prefixes []string
	// Width is the width of the terminal. If nil or 0, the output is not a terminal and tables are as wide as they need.
	Width func() int
}

func (o Options) width() int {
	if o.Width == nil {
		return 0
	}
	return o.Width()
}

// Commands makes cobra commands. It may only be used by one goroutine.
type Commands struct {
	o         Options
	overrides map[*operation.Definition]override
}

// New returns a Commands.
func New(o Options) *Commands {
	return &Commands{o: o, overrides: map[*operation.Definition]override{}}
}

// View is where a result is printed.
type View struct {
	Out, Err io.Writer
	Server   string // "": the home of this machine
	Width    int    // of the terminal; 0: not a terminal
}

// Narrow reports whether a wide table would cut its cells too much, so that the least important columns should be left out.
func (v View) Narrow() bool { return v.Width > 0 && v.Width < narrow }

// narrow is the width below which eight columns are too many.
const narrow = 110

// Columns writes a table that fits the view.
func (v View) Columns() *Columns { return NewColumns(v.Out, v.Width) }

type override struct {
	render  func(v View, in, out any) error
	json    func(v View, out any) any
	usage   bool // an invalid input is a command line error
	items   func(v View, json bool) (each func(item any) error, end func(error) error)
	fails   func(out any) error
	prepare func(cmd *cobra.Command) func(ctx context.Context, c Connection, in reflect.Value, args []string) error
}

func (c *Commands) change(d *operation.Definition, change func(*override)) {
	o := c.overrides[d]
	change(&o)
	c.overrides[d] = o
}

// Render prints an operation's output to people. Its error is the command's.
func Render[In, Out any](c *Commands, op operation.Operation[In, Out], show func(v View, in In, out Out) error) {
	c.change(op.Definition, func(o *override) {
		o.render = func(v View, in, out any) error { return show(v, in.(In), out.(Out)) }
	})
}

// JSON changes the shape of an operation's --json output.
func JSON[In, Out any](c *Commands, op operation.Operation[In, Out], shape func(v View, out Out) any) {
	c.change(op.Definition, func(o *override) { o.json = func(v View, out any) any { return shape(v, out.(Out)) } })
}

// InvalidIsUsage turns an input that the operation calls invalid into a command line error, with that
// exit code.
func InvalidIsUsage(c *Commands, ops ...operation.Any) {
	for _, op := range ops {
		c.change(op.Def(), func(o *override) { o.usage = true })
	}
}

// Fails makes a command fail although it has an output: the command returns the error after it has printed the output.
func Fails[In, Out any](c *Commands, op operation.Operation[In, Out], fails func(Out) error) {
	c.change(op.Definition, func(o *override) { o.fails = func(out any) error { return fails(out.(Out)) } })
}

// Items prints a stream: each item, then the end with the stream's error. The error of end is the command's.
func Items[In, Item any](c *Commands, op operation.Stream[In, Item], show func(v View, json bool) (each func(Item) error, end func(error) error)) {
	c.change(op.Definition, func(o *override) {
		o.items = func(v View, json bool) (func(any) error, func(error) error) {
			each, end := show(v, json)
			return func(item any) error { return each(item.(Item)) }, end
		}
	})
}

// Prepare adds flags to an operation's commands. The function that add returns changes the input before it is sent;
// args are the positional arguments.
func Prepare[In, Out any](c *Commands, op operation.Operation[In, Out], add func(cmd *cobra.Command) func(ctx context.Context, c Connection, in *In, args []string) error) {
	c.change(op.Definition, func(o *override) {
		o.prepare = func(cmd *cobra.Command) func(context.Context, Connection, reflect.Value, []string) error {
			change := add(cmd)
			return func(ctx context.Context, to Connection, in reflect.Value, args []string) error {
				return change(ctx, to, in.Addr().Interface().(*In), args)
			}
		}
	})
}

// AddTo adds the operations whose words begin with the name of a command as its subcommands. Existing subcommands,
// written by hand, are kept.
func (c *Commands) AddTo(group *cobra.Command, set *operation.Set) *cobra.Command {
	for _, d := range set.All() {
		for _, line := range d.CLI {
			words := strings.Fields(line.Words)
			if words[0] != group.Name() {
				continue
			}
			at := group
			for _, word := range words[1:max(1, len(words)-1)] {
				at = c.child(at, word)
			}
			last := words[len(words)-1]
			if len(words) == 1 || has(at, last) {
				continue
			}
			at.AddCommand(c.command(d, line, last))
		}
	}
	return group
}

// AddAll adds every operation of a set below root: to existing groups, or to new ones if a
// definition names one that does not exist. wanted selects the groups to build in full, since building all of them takes time;
// nil: all.
func (c *Commands) AddAll(root *cobra.Command, set *operation.Set, wanted func(group string) bool) {
	for _, d := range set.All() {
		for _, line := range d.CLI {
			words := strings.Fields(line.Words)
			if has(root, words[0]) {
				continue
			}
			var made *cobra.Command
			if len(words) == 1 {
				made = c.command(d, line, words[0])
				root.AddCommand(made)
			} else if made = c.child(root, words[0]); wanted == nil || wanted(words[0]) {
				c.AddTo(made, set)
			}
			if c.o.Flags != nil {
				c.o.Flags(made)
			}
		}
	}
}

func has(cmd *cobra.Command, name string) bool {
	return slices.ContainsFunc(cmd.Commands(), func(x *cobra.Command) bool { return x.Name() == name })
}

func (c *Commands) child(at *cobra.Command, word string) *cobra.Command {
	for _, x := range at.Commands() {
		if x.Name() == word {
			return x
		}
	}
	x := &cobra.Command{Use: word, Short: cmp.Or(c.o.Groups[word], "Commands about "+word), RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return c.o.Usage(UnknownCommand(cmd, args[0]))
		}
		return cmd.Help()
	}}
	at.AddCommand(x)
	return x
}

// UnknownCommand is the error for an unknown subcommand, with a suggestion.
func UnknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, x := range cmd.Commands() {
		if x.IsAvailableCommand() {
			names = append(append(names, x.Name()), x.Aliases...)
		}
	}
	return fmt.Errorf("there is no command `%s %s`%s `%s --help` lists them", cmd.CommandPath(), ClipLine(word, 80), cmp.Or(suggest.Hint(word, names), ";"), cmd.CommandPath())
}

// Command makes the command of an operation's first command line, for a command without a group.
func (c *Commands) Command(op operation.Any) *cobra.Command {
	d := op.Def()
	words := strings.Fields(d.CLI[0].Words)
	return c.command(d, d.CLI[0], words[len(words)-1])
}

func (c *Commands) command(d *operation.Definition, line operation.CLI, word string) *cobra.Command {
	b := &bound{Commands: c, d: d, line: line, args: line.Arguments(), own: c.overrides[d]}
	cmd := &cobra.Command{Use: strings.TrimSpace(word + " " + line.Args), Short: cmp.Or(line.Help, d.Help), Long: cmp.Or(line.Doc, d.Doc),
		Example: cmp.Or(line.Example, d.Example, b.example()), Args: b.checkArgs, RunE: b.run, ValidArgsFunction: b.completeArgument}
	if line.Alias != "" {
		cmd.Aliases = []string{line.Alias}
	}
	if d.Shape != operation.Downloaded {
		cmd.Flags().BoolVar(c.o.JSON, "json", false, "print JSON")
	}
	if d.Effect == operation.Destroys {
		cmd.Flags().BoolVarP(&b.yes, "yes", "y", false, "really")
	}
	if d.Shape == operation.Downloaded {
		cmd.Flags().StringVarP(&b.output, "output", "o", "", "file to write (default: standard output)")
	}
	b.addFlags(cmd)
	if b.own.prepare != nil {
		b.change = b.own.prepare(cmd)
	}
	return cmd
}
