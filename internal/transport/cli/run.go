package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/operation"
	"chorus/internal/text"
)

func (b *bound) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	in, err := b.input(cmd, args)
	if err != nil {
		return err
	}
	if b.d.Effect == operation.Destroys && !b.yes {
		return b.o.Usage(fmt.Errorf("%s: %s; add --yes to confirm", strings.ToLower(b.d.Help), cmp.Or(b.line.Ask, "this cannot be undone")))
	}
	to, err := b.o.Connect(ctx)
	if err != nil {
		return err
	}
	err = b.wholeNames(ctx, to, in)
	if err == nil && b.change != nil {
		err = b.change(ctx, to, in, args)
	}
	if err == nil {
		err = b.show(ctx, to, in, View{Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(), Server: to.Server, Width: b.o.width()})
	}
	if b.own.usage && err != nil && operation.KindOf(err) == operation.Invalid {
		err = b.o.Usage(err)
	}
	return errors.Join(err, to.Close())
}

func (b *bound) show(ctx context.Context, to Connection, in reflect.Value, v View) error {
	if b.d.Shape == operation.Streamed {
		return b.follow(ctx, to, in, v)
	}
	out, err := b.whole(ctx, to, in)
	if err != nil {
		return err
	}
	if file, ok := out.(operation.File); ok {
		defer file.Close()
		return save(v.Out, b.output, file)
	}
	if err := b.print(v, in.Interface(), out); err != nil || b.own.fails == nil {
		return err
	}
	return b.own.fails(out)
}

// print prints an output, for people or as JSON.
func (b *bound) print(v View, in, out any) error {
	switch {
	case *b.o.JSON && b.own.json != nil:
		return text.WriteIndentedJSON(v.Out, b.own.json(v, out), "")
	case *b.o.JSON:
		return text.WriteIndentedJSON(v.Out, items(out), "")
	case b.own.render != nil:
		return b.own.render(v, in, out)
	case b.d.Done != "":
		_, err := fmt.Fprintln(v.Out, operation.Sentence(b.d.Done, in, out))
		return err
	}
	return WriteTable(v, b.d.TableOf(out), b.d.Empty)
}

// whole executes the operation. For a list it reads as many pages as needed.
func (b *bound) whole(ctx context.Context, to Connection, in reflect.Value) (any, error) {
	out, err := b.d.Whole(ctx, to, to.Caller, in.Interface())
	return out, b.d.NamedIn(operation.InCLI, err)
}

// items returns a list without its envelope, as --json prints it.
func items(out any) any {
	v := reflect.ValueOf(out)
	if v.Kind() != reflect.Struct {
		return out
	}
	list := v.FieldByName("Items")
	switch {
	case !list.IsValid() || list.Kind() != reflect.Slice:
		return out
	case list.IsNil():
		return []any{}
	}
	return list.Interface()
}

func (b *bound) follow(ctx context.Context, to Connection, in reflect.Value, v View) error {
	each := func(item any) error { return json.NewEncoder(v.Out).Encode(item) }
	end := func(err error) error { return err }
	if b.own.items != nil {
		each, end = b.own.items(v, *b.o.JSON)
	}
	for item, err := range to.Follow(ctx, to.Caller, b.d, in.Interface()) {
		if err == nil {
			err = each(item)
		}
		if err != nil {
			return end(err)
		}
	}
	return end(nil)
}

// save writes a file's bytes; name "": to standard output.
func save(w io.Writer, name string, file operation.File) error {
	if name == "" {
		_, err := io.Copy(w, file)
		return err
	}
	to, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	_, err = io.Copy(to, file)
	return errors.Join(err, to.Close())
}
