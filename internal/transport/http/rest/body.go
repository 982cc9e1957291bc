package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxDepth is far more than any of our bodies needs, and small enough to walk cheaply.
const maxDepth = 32

// checker validates values against a schema. The validator decides; explain only describes what is wrong.
type checker struct {
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
}

func newChecker(schema *jsonschema.Schema) (*checker, error) {
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &checker{schema, resolved}, nil
}

// first describes the first mistake in a plain value; "": there is none.
func (c *checker) first(value any) string {
	err := c.resolved.Validate(value)
	if err == nil {
		return ""
	}
	return constraint(c.schema, value, err.Error())
}

// decode reads a body into a struct, or reports everything that is wrong with it.
func (c *checker) decode(data []byte, into reflect.Value) error {
	if !utf8.Valid(data) {
		at := firstInvalid(data)
		return badFields(http.StatusBadRequest, place(data, at, "", "the body is not valid UTF-8"))
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return badFields(http.StatusBadRequest, syntax(data, err))
	}
	tree, f := parse(data)
	if f != nil {
		return badFields(http.StatusBadRequest, *f)
	}
	if err := c.resolved.Validate(tree.value()); err != nil {
		wrong := explain(data, c.schema, tree, "")
		if len(wrong) == 0 {
			wrong = []FieldError{{In: "body", Message: err.Error()}}
		}
		return badFields(http.StatusBadRequest, wrong...)
	}
	if err := json.Unmarshal(data, into.Addr().Interface()); err != nil {
		return badFields(http.StatusBadRequest, misfit(data, err))
	}
	return nil
}

func firstInvalid(data []byte) int {
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		at += n
	}
	return at
}

// place reports a mistake at a byte of the body.
func place(data []byte, at int, field, message string) FieldError {
	at = min(max(at, 0), len(data))
	line := 1 + bytes.Count(data[:at], []byte("\n"))
	column := 1 + utf8.RuneCount(data[bytes.LastIndexByte(data[:at], '\n')+1:at])
	return FieldError{In: "body", Field: field, Message: message, Line: line, Column: column}
}

func syntax(data []byte, err error) FieldError {
	var s *json.SyntaxError
	if !errors.As(err, &s) {
		return FieldError{In: "body", Message: "it is not valid JSON: " + err.Error()}
	}
	if int(s.Offset) >= len(data) && s.Error() == "unexpected end of JSON input" {
		return place(data, len(data), "", "the JSON is not finished")
	}
	return place(data, int(s.Offset)-1, "", "it is not valid JSON: "+s.Error())
}

// misfit reports a value that the schema accepts and the Go type does not: a number too large.
func misfit(data []byte, err error) FieldError {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return place(data, int(t.Offset), t.Field, "it does not fit: "+t.Value)
	}
	return FieldError{In: "body", Message: err.Error()}
}

// node is a JSON value with its position.
type node struct {
	at     int
	token  json.Token // of a plain value; a json.Delim of an object or list
	fields []member
	items  []node
}

type member struct {
	at   int
	name string
	node node
}

func (n node) value() any {
	switch n.token {
	case json.Delim('{'):
		out := make(map[string]any, len(n.fields))
		for _, m := range n.fields {
			out[m.name] = m.node.value()
		}
		return out
	case json.Delim('['):
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.value()
		}
		return out
	}
	return n.token
}

// parser reads JSON that is known to be well formed.
type parser struct {
	data []byte
	dec  *json.Decoder
}

// parse returns the tree, or an error for what JSON allows and we do not: too much nesting, or a duplicate name.
func parse(data []byte) (node, *FieldError) {
	p := &parser{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	return p.read("", 0)
}

// next returns the next token and its position.
func (p *parser) next() (int, json.Token) {
	at := int(p.dec.InputOffset())
	for at < len(p.data) && bytes.IndexByte([]byte(" \t\r\n,:"), p.data[at]) >= 0 {
		at++
	}
	token, _ := p.dec.Token() // well formed
	return at, token
}

func (p *parser) read(field string, depth int) (node, *FieldError) {
	at, token := p.next()
	n := node{at: at, token: token}
	open, ok := token.(json.Delim)
	if !ok {
		return n, nil
	}
	if depth == maxDepth {
		f := place(p.data, at, field, fmt.Sprintf("it is nested more than %d levels deep", maxDepth))
		return n, &f
	}
	seen := map[string]bool{}
	for p.dec.More() {
		if open == '[' {
			item, f := p.read(fmt.Sprintf("%s[%d]", field, len(n.items)), depth+1)
			if f != nil {
				return n, f
			}
			n.items = append(n.items, item)
			continue
		}
		at, key := p.next()
		name, _ := key.(string)
		if seen[name] {
			f := place(p.data, at, join(field, name), "it is given twice")
			return n, &f
		}
		seen[name] = true
		value, f := p.read(join(field, name), depth+1)
		if f != nil {
			return n, f
		}
		n.fields = append(n.fields, member{at, name, value})
	}
	p.next() // the end
	return n, nil
}

func join(field, name string) string {
	name = clip(name, 60)
	if field == "" {
		return name
	}
	return field + "." + name
}
