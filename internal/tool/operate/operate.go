// Package operate turns operations into tools, so that agents and MCP clients can ask
// of Chorus what people can. Each definition with a Tool name becomes a tool.Tool for
// agents; the caller names the tools of MCP clients.
//
// It promises that a call runs as the caller that the wiring provides, with that caller's scopes and
// no others; that a call repeated after a crash takes effect once if the operation supports keys; and
// that every mistake of the model is a result that it can correct.
package operate

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"

	"chorus/internal/operation"
	"chorus/internal/tool"
)

// Options are what tools are made of.
type Options struct {
	Executor   operation.Executor
	Operations *operation.Set
	// Scopes are the most that a caller can have: operations that need
	// another scope are left out; nil: none are left out.
	Scopes []operation.Scope
	// Caller returns on whose authority a call runs.
	Caller func(context.Context) operation.Caller
}

// Tools returns the tools of a set, in its order.
func Tools(o Options) (list []tool.Tool) {
	most := operation.Caller{Scopes: o.Scopes}
	for _, d := range o.Operations.All() {
		if d.Tool != "" && d.Shape == operation.Unary && (o.Scopes == nil || d.Scope == "" || most.May(d.Scope)) {
			list = append(list, New(o, d, d.Tool))
		}
	}
	return list
}

// New returns the tool of one unary operation, under a name.
func New(o Options, d *operation.Definition, name string) tool.Tool {
	return &operated{o: o, d: d, name: name}
}

// operated is an operation as a tool.
type operated struct {
	o    Options
	d    *operation.Definition
	name string
	once sync.Once
	spec tool.Spec
}

var (
	_ tool.Tool    = (*operated)(nil)
	_ tool.Labeler = (*operated)(nil)
	_ tool.Aliaser = (*operated)(nil)
)

func (t *operated) Spec() tool.Spec {
	t.once.Do(func() {
		words := t.d.Help + "."
		if t.d.Doc != "" {
			words += " " + t.d.Doc
		}
		risk := map[operation.Effect]tool.Risk{operation.Reads: tool.Low, operation.Creates: tool.Medium, operation.Changes: tool.Medium, operation.Destroys: tool.High}
		schema, _ := json.Marshal(Schema(t.d)) // maps and strings only: it cannot fail
		group, _, _ := strings.Cut(t.d.Name, ".")
		t.spec = tool.Spec{Name: t.name, Description: words, Schema: schema, Group: group, ReadOnly: t.d.Effect == operation.Reads, Once: t.d.KeyIndex() != nil,
			Ends: true, Risk: risk[t.d.Effect]}
	})
	return t.spec
}

// Access implements tool.Tool. A call is judged by its arguments,
// under the name that the operation specifies.
func (t *operated) Access(args []byte) []tool.Access {
	if t.d.Judged == "" {
		return nil
	}
	return []tool.Access{{Tool: t.d.Judged, Detail: string(args)}}
}

// JudgedAs implements tool.Judged. It returns the names that Access may return.
func (t *operated) JudgedAs() []string {
	if t.d.Judged == "" {
		return nil
	}
	return []string{t.d.Judged}
}

// Aliases implements tool.Aliaser: former names of the tool still work.
func (t *operated) Aliases() []tool.Alias {
	if t.d.Former == "" || t.name != t.d.Tool {
		return nil
	}
	return []tool.Alias{tool.Also(t.d.Former)}
}

func (t *operated) Label([]byte) string { return t.d.Help }

func (t *operated) Run(ctx context.Context, args []byte) (tool.Result, error) {
	in, err := t.d.ReadArguments(args)
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	t.d.SetKey(in, tool.CallFrom(ctx).Key)
	out, err := t.o.Executor.Execute(ctx, t.o.Caller(ctx), t.d, in.Interface())
	var ours *operation.Error
	switch {
	case errors.As(err, &ours) && ours.Kind != operation.Failed:
		return tool.Fail(ours.Message), nil
	case err != nil:
		return tool.Result{}, err
	case t.d.Out == reflect.TypeFor[operation.None]():
		return tool.OK("done"), nil
	}
	data, err := json.Marshal(out)
	return tool.From("operation "+t.d.Name, string(data)), err
}
