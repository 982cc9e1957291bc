package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Func describes a tool whose arguments are the Go struct In. Its fields with their `json` names and
// `jsonschema` descriptions become the schema; fields with omitempty are optional. Only Name, Description and
// Run are required. The functions must be safe for concurrent use; Access and Label must be pure.
type Func[In any] struct {
	Name        string
	Description string // usually an embedded .md; surrounding space is trimmed
	ReadOnly    bool
	Deferred    bool                // see Spec
	Rare        bool                // see Spec
	Risk        Risk                // Low if empty
	Enum        map[string][]string // allowed values of string parameters
	Aliases     []Alias
	Access      func(In) []Access // nil: judged by the arguments
	JudgedAs    []string          // the tools that Access names; if empty, only Name
	Label       func(In) string
	Preview     func(context.Context, In) string
	Run         func(context.Context, In) (Result, error)
}

// New returns a Tool for the description. Nothing is computed until the Spec is
// first needed. NewSet reports a type that has no schema.
func New[In any](f Func[In]) Tool { return &typed[In]{def: f} }

type typed[In any] struct {
	def  Func[In]
	once sync.Once
	spec Spec
	chk  *checker
	err  error
}

var (
	_ Tool      = (*typed[struct{}])(nil)
	_ Labeler   = (*typed[struct{}])(nil)
	_ Previewer = (*typed[struct{}])(nil)
	_ Aliaser   = (*typed[struct{}])(nil)
	_ Judged    = (*typed[struct{}])(nil)
)

func (t *typed[In]) build() {
	d := t.def
	t.spec = Spec{Name: d.Name, ReadOnly: d.ReadOnly, Deferred: d.Deferred, Rare: d.Rare, Ends: true, Risk: d.Risk}
	t.spec.Description = string(bytes.TrimSpace([]byte(d.Description)))
	t.spec.Risk = cmp.Or(t.spec.Risk, Low)
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		t.err = fmt.Errorf("schema of tool %s: %w", d.Name, err)
		return
	}
	plain(schema)
	for name, values := range d.Enum {
		prop := schema.Properties[name]
		if prop == nil {
			t.err = fmt.Errorf("schema of tool %s: no parameter %q to give values to", d.Name, name)
			return
		}
		for _, v := range values {
			prop.Enum = append(prop.Enum, v)
		}
	}
	t.spec.Schema, t.err = json.Marshal(schema)
	t.chk = newChecker(schema)
	t.chk.sorted = d.Access == nil
	t.chk.shallow = flat(schema)
}

// flat reports whether a schema of ours specifies only names and types.
func flat(schema *jsonschema.Schema) bool {
	for _, p := range schema.Properties {
		simple := p.Type == "string" || p.Type == "number" || p.Type == "integer" || p.Type == "boolean"
		if !simple || p.Enum != nil || p.AnyOf != nil || p.Minimum != nil || p.Maximum != nil || p.Pattern != "" {
			return false
		}
	}
	return true
}

// Share lets the tools of a list reuse the schemas of equally described tools in another, so that
// one of each is enough for any number of threads. Neither list changes.
func Share(list, from []Tool) {
	for _, t := range list {
		if t, ok := t.(interface{ takeSchema(Tool) bool }); ok {
			_ = slices.ContainsFunc(from, t.takeSchema) // a tool without a match makes its own schema
		}
	}
}

// takeSchema copies the schema from a tool that would make the same one, and reports whether it did.
func (t *typed[In]) takeSchema(other Tool) bool {
	o, ok := other.(*typed[In])
	if !ok || o == t {
		return false
	}
	a, b := &t.def, &o.def
	if a.Name != b.Name || a.Description != b.Description || a.ReadOnly != b.ReadOnly || a.Rare != b.Rare || a.Risk != b.Risk || (a.Access == nil) != (b.Access == nil) ||
		!maps.EqualFunc(a.Enum, b.Enum, slices.Equal) {
		return false
	}
	o.once.Do(o.build)
	t.once.Do(func() { t.spec, t.chk, t.err = o.spec, o.chk, o.err })
	return true
}

// plain removes "or null" from pointers and slices: models that see a list of
// types send null, and some providers reject the list.
func plain(s *jsonschema.Schema) {
	if len(s.Types) == 2 && slices.Contains(s.Types, "null") {
		for _, typ := range s.Types {
			if typ != "null" {
				s.Type = typ
			}
		}
		s.Types = nil
	}
	for _, prop := range s.Properties {
		plain(prop)
	}
	if s.Items != nil {
		plain(s.Items)
	}
}

func (t *typed[In]) Spec() Spec {
	t.once.Do(t.build)
	return t.spec
}

func (t *typed[In]) checker() (*checker, error) {
	t.once.Do(t.build)
	return t.chk, t.err
}

func (t *typed[In]) Access(args []byte) []Access {
	in, ok := decode[In](args)
	if !ok || t.def.Access == nil {
		return nil
	}
	return t.def.Access(in)
}

// Run implements Tool. It also works if the caller validated nothing.
func (t *typed[In]) Run(ctx context.Context, args []byte) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	chk, err := t.checker()
	if err != nil {
		return Result{}, err
	}
	if err := chk.check(t.def.Name, args); err != nil {
		return Fail(err.Error()), nil
	}
	in, ok := decode[In](args)
	if !ok {
		return Fail(chk.explain(t.def.Name, "they do not fit the parameters")), nil
	}
	return t.def.Run(ctx, in)
}

func (t *typed[In]) Label(args []byte) string {
	in, ok := decode[In](args)
	if !ok || t.def.Label == nil {
		return t.def.Name
	}
	return t.def.Label(in)
}

func (t *typed[In]) Preview(ctx context.Context, args []byte) string {
	in, ok := decode[In](args)
	if !ok || t.def.Preview == nil {
		return ""
	}
	return t.def.Preview(ctx, in)
}

func (t *typed[In]) Aliases() []Alias { return t.def.Aliases }

func (t *typed[In]) JudgedAs() []string { return t.def.JudgedAs }

func decode[In any](args []byte) (In, bool) {
	var in In
	err := json.Unmarshal(args, &in)
	return in, err == nil
}
