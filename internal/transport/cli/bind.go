package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/operation"
)

// bound is one command line of an operation.
type bound struct {
	*Commands
	d      *operation.Definition
	line   operation.CLI
	args   []operation.Argument
	own    override
	change func(context.Context, Connection, reflect.Value, []string) error
	yes    bool
	output string
}

// argument is the position of a field among the positional arguments; -1: it is a flag.
func (b *bound) argument(f operation.Field) int {
	return slices.IndexFunc(b.args, func(a operation.Argument) bool { return f.Is(operation.InCLI, a.Field) })
}

// flagName returns the flag of a field; false: it has none here.
func (b *bound) flagName(f operation.Field) (name, short string, ok bool) {
	name, short, ok = f.In(operation.InCLI)
	_, set := b.line.Set[f.Name]
	return kebab(name), short, ok && !set && !f.File && b.argument(f) < 0
}

func (b *bound) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	for _, f := range b.d.Fields() {
		name, short, ok := b.flagName(f)
		if !ok {
			continue
		}
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		doc := f.Doc
		if len(f.Enum) > 0 && doc == "" {
			doc = strings.Join(f.Enum, ", ")
		}
		switch t.Kind() {
		case reflect.Bool:
			flags.BoolP(name, short, false, doc)
		case reflect.Int, reflect.Int64:
			n, _ := strconv.ParseInt(f.Default, 10, 64) // Set.Check has parsed it
			flags.Int64P(name, short, n, doc)
		case reflect.Slice:
			flags.StringSliceP(name, short, nil, doc)
		default:
			flags.StringP(name, short, f.Default, doc)
		}
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return b.complete(cmd.Context(), f, prefix)
		}) // fails only for an unknown flag
	}
}

func (b *bound) checkArgs(cmd *cobra.Command, args []string) error {
	least, most := 0, len(b.args)
	for _, a := range b.args {
		if !a.Optional {
			least++
		}
		if a.Rest {
			most = max(most, len(args))
		}
	}
	if len(args) < least || len(args) > most {
		return b.o.Usage(fmt.Errorf("usage: %s", cmd.UseLine()))
	}
	return nil
}

// input builds the operation's input from the command line.
func (b *bound) input(cmd *cobra.Command, args []string) (reflect.Value, error) {
	in := reflect.New(b.d.In).Elem()
	for _, f := range b.d.Fields() {
		at := in.FieldByIndex(f.Index)
		name, _, isFlag := b.flagName(f)
		n := b.argument(f)
		var err error
		switch {
		case b.line.Set[f.Name] != nil:
			at.Set(reflect.ValueOf(b.line.Set[f.Name]))
		case n >= 0 && n < len(args):
			err = b.setArgument(f, at, args[n:], b.args[n].Rest, cmd.InOrStdin())
			name = b.args[n].Field
		case isFlag:
			err = setFlag(cmd, name, f, at)
			name = "--" + name
		}
		if err != nil {
			return in, b.o.Usage(fmt.Errorf("%s: %w", name, err))
		}
	}
	return in, nil
}

func (b *bound) setArgument(f operation.Field, into reflect.Value, rest []string, all bool, stdin io.Reader) error {
	switch {
	case f.File && rest[0] == "-":
		into.Set(reflect.ValueOf(operation.Upload("", stdin)))
		return nil
	case f.File:
		file, err := os.Open(rest[0])
		if err == nil {
			into.Set(reflect.ValueOf(operation.File{Name: filepath.Base(rest[0]), ReadCloser: file}))
		}
		return err
	case all && into.Kind() == reflect.Slice:
		for _, one := range rest {
			if err := f.SetText(into, one, time.Now()); err != nil {
				return err
			}
		}
		return nil
	case all:
		return f.SetText(into, strings.Join(rest, " "), time.Now())
	}
	return f.SetText(into, rest[0], time.Now())
}

// setFlag sets a field from its flag, or from the default if the flag is not given.
func setFlag(cmd *cobra.Command, name string, f operation.Field, into reflect.Value) error {
	flag := cmd.Flags().Lookup(name)
	switch {
	case flag == nil, !flag.Changed && f.Default == "", flag.Value.String() == "":
		return nil
	case into.Kind() == reflect.Slice:
		list, err := cmd.Flags().GetStringSlice(name)
		for _, one := range list {
			err = errors.Join(err, f.SetText(into, one, time.Now()))
		}
		return err
	}
	err := f.SetText(into, flag.Value.String(), time.Now())
	if err == nil && into.IsZero() { // a zero value cannot be told from an omitted one later
		err = f.CheckGiven(into)
	}
	return err
}

// wholeNames completes prefixes of names. An id may be as short as tables show it; destructive operations accept nothing shorter.
func (b *bound) wholeNames(ctx context.Context, to Connection, in reflect.Value) error {
	for _, f := range b.d.Fields() {
		at := in.FieldByIndex(f.Index)
		if f.Noun == "" || at.Kind() != reflect.String || at.String() == "" {
			continue
		}
		destroys := b.d.Effect == operation.Destroys
		short := beginsID(at.String()) && (!destroys || len(at.String()) >= shortID)
		if !short && (destroys || !slices.Contains(b.o.Prefixes, f.Noun)) {
			continue
		}
		name, err := operation.Complete(ctx, to, to.Caller, f.Noun, at.String())
		if err != nil {
			return err
		}
		at.SetString(name)
	}
	return nil
}

func (b *bound) completeArgument(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
	for _, f := range b.d.Fields() {
		if b.argument(f) == len(given) {
			return b.complete(cmd.Context(), f, prefix)
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// complete suggests values: those of an enum, or names from the executor.
func (b *bound) complete(ctx context.Context, f operation.Field, prefix string) ([]string, cobra.ShellCompDirective) {
	switch {
	case f.File:
		return nil, cobra.ShellCompDirectiveDefault
	case len(f.Enum) > 0 || f.Noun == "":
		return f.Enum, cobra.ShellCompDirectiveNoFileComp
	}
	return Suggest(ctx, b.o.Connect, f.Noun, prefix)
}

// Suggest completes a name of a thing that the operations know, such as a session or an agent.
func Suggest(ctx context.Context, connect func(context.Context) (Connection, error), noun, prefix string) ([]string, cobra.ShellCompDirective) {
	to, err := connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer to.Close()
	list, err := operation.Names.Call(ctx, to, to.Caller, operation.Prefix{Noun: noun, Prefix: prefix})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return list.Items, cobra.ShellCompDirectiveNoFileComp
}

func kebab(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
