package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Value is a field of a flat input: the route decides where it comes from.
type Value struct {
	Index    []int // for reflect.Value.FieldByIndex
	Name     string
	Required bool
	File     bool   // it is the body itself, as bytes
	Header   string // it may also come from this header, which then wins
	Doc      string // of the header
}

// Flat is a route whose input is one struct without location tags: fields in braces come from the path, the others from
// the query of GET and DELETE, or else from the body, a JSON object. It is prepared on first use.
type Flat struct {
	Route
	In, Out   reflect.Type   // Out nil: Do writes the answer itself
	Media     string         // of an answer that Do writes
	Item      reflect.Type   // the type of such an answer in the document; nil: bytes
	Body      string         // the name of the body's schema; "": it is inlined
	NeedsBody bool           // a body is required although none of its fields is
	Fields    func() []Value // in the order of the document
	Do        func(w http.ResponseWriter, r *http.Request, in reflect.Value, file File) (any, error)
}

// flat is the additional state of a flat route.
type flat struct {
	Flat
	once sync.Once
	err  error
}

// Operation makes the route. Mistakes in it appear on first use: see Kernel.Check.
func (f Flat) Operation() Operation {
	op := Operation{Route: f.Route, in: f.In, out: f.Out, media: f.Media, shape: f.Item, flat: &flat{Flat: f}}
	op.serve = serveFlat
	return op
}

func serveFlat(k *Kernel, op *Operation, w http.ResponseWriter, r *http.Request) error {
	in := reflect.New(op.in).Elem()
	var file File
	body, err := op.bind.read(op, w, r, in, &file)
	if err != nil {
		return err
	}
	if op.out == nil {
		_, err := op.flat.Do(w, r, in, file)
		return err
	}
	ran := false
	status, answer, err := k.once(op, r, body, func() ([]byte, error) {
		ran = true
		out, err := op.flat.Do(w, r, in, file)
		if err != nil || op.out == reflect.TypeFor[None]() {
			return nil, err
		}
		filled := reflect.New(op.out).Elem()
		filled.Set(reflect.ValueOf(out))
		fill(filled)
		return encode(filled.Interface())
	})
	if err != nil {
		return err
	}
	if !ran {
		w.Header().Set(Replayed, "true")
	}
	if op.out.Implements(reflect.TypeFor[Locator]()) {
		if out := reflect.New(op.out); json.Unmarshal(answer, out.Interface()) == nil {
			w.Header().Set("Location", out.Elem().Interface().(Locator).Location())
		}
	}
	writeJSON(w, r, status, answer)
	return nil
}

// Check prepares every route, which otherwise happens on first use, and reports mistakes.
func (k *Kernel) Check() error {
	for i := range k.ops {
		if err := k.ready(&k.ops[i]); err != nil {
			return err
		}
	}
	return nil
}

// ready prepares the binding of a flat route; other routes already have theirs.
func (k *Kernel) ready(op *Operation) error {
	if op.flat == nil {
		return nil
	}
	op.flat.once.Do(func() {
		s := newShapes(&k.o)
		op.bind, op.flat.err = op.flat.binding(s)
		op.flat.err = cmp.Or(op.flat.err, s.err)
		if op.flat.err != nil {
			op.flat.err = fmt.Errorf("route %s %s: %w", op.Method, op.Path, op.flat.err)
		}
	})
	return op.flat.err
}

func (f *flat) binding(s *shapes) (*binding, error) {
	b := &binding{body: -1}
	fields := f.Fields()
	inBody := f.Method != http.MethodGet && f.Method != http.MethodDelete &&
		!slices.ContainsFunc(fields, func(v Value) bool { return v.File })
	body := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, v := range fields {
		if v.File {
			b.body, b.want, b.file = 0, true, true
			continue
		}
		field := f.In.FieldByIndex(v.Index)
		place := "query"
		switch {
		case strings.Contains(f.Path, "{"+v.Name+"}"):
			place, v.Required = "path", true
		case inBody:
			schema := s.of(field.Type, whole)
			if err := refine(schema, field.Tag); err != nil {
				return nil, err
			}
			body.Properties[v.Name] = schema
			body.PropertyOrder = append(body.PropertyOrder, v.Name)
			if v.Required {
				body.Required = append(body.Required, v.Name)
			}
			continue
		}
		if err := b.add(s, field, v, place); err != nil {
			return nil, err
		}
	}
	if !inBody || len(body.Properties) == 0 {
		return b, nil
	}
	b.body, b.want, b.whole = 0, f.NeedsBody || len(body.Required) > 0, body
	var err error
	b.check, err = newChecker(body)
	return b, err
}

// add adds a parameter, and the header that can replace it.
func (b *binding) add(s *shapes, field reflect.StructField, v Value, place string) error {
	schema, err := s.field(field)
	if err != nil {
		return err
	}
	check, err := newChecker(schema)
	if err != nil {
		return err
	}
	b.params = append(b.params, param{in: place, name: v.Name, index: v.Index, check: check, doc: field.Tag.Get("doc"), required: v.Required})
	if place == "query" {
		b.queries = append(b.queries, v.Name)
	}
	if v.Header != "" { // read after the parameter, so that it wins
		b.params = append(b.params, param{in: "header", name: v.Header, index: v.Index, check: check, doc: v.Doc})
	}
	return nil
}

// describeBody is the body of a flat route in the document.
func (f *flat) describeBody(s *shapes, b *binding) *RequestBody {
	schema := b.whole
	if f.Body != "" {
		s.components[f.Body] = schema
		schema = &jsonschema.Schema{Ref: "#/components/schemas/" + f.Body}
	}
	return &RequestBody{Required: b.want, Content: map[string]Media{"application/json": {schema}}}
}
