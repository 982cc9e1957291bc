package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// shapes makes schemas from Go types. Output is described by references to components. Input is described twice: by a
// reference for the document, and in full for the validator.
type shapes struct {
	o          *Options
	components map[string]*jsonschema.Schema
	names      map[string]reflect.Type
	err        error // the first type that has no schema
}

func newShapes(o *Options) *shapes {
	return &shapes{o: o, components: map[string]*jsonschema.Schema{}, names: map[string]reflect.Type{}}
}

var timeType = reflect.TypeFor[time.Time]()

// mode is the purpose of a schema.
type mode int

const (
	whole  mode = iota // input, without references
	asked              // input, with references
	answer             // output
)

// input is the whole schema of a body.
func (s *shapes) input(t reflect.Type) *jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return s.of(t, whole)
}

// field is the schema of a parameter.
func (s *shapes) field(f reflect.StructField) (*jsonschema.Schema, error) {
	switch kind := f.Type.Kind(); {
	case f.Type == timeType:
	case kind == reflect.String, kind == reflect.Bool, kind == reflect.Int, kind == reflect.Int64:
	default:
		return nil, fmt.Errorf("field %s: a parameter cannot be %s", f.Name, f.Type)
	}
	schema := s.of(f.Type, whole)
	return schema, refine(schema, f.Tag)
}

func (s *shapes) of(t reflect.Type, m mode) *jsonschema.Schema {
	if schema, ok := s.o.Schemas[t]; ok {
		return schema.CloneSchemas()
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return &jsonschema.Schema{}
	}
	switch t.Kind() {
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &jsonschema.Schema{Type: "integer"}
	case reflect.Float32, reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	case reflect.Pointer:
		return s.of(t.Elem(), m)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
		}
		return &jsonschema.Schema{Type: "array", Items: s.of(t.Elem(), m)}
	case reflect.Map:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: s.of(t.Elem(), m)}
	case reflect.Interface:
		return s.union(t, m)
	case reflect.Struct:
		if m == whole || t.Name() == "" {
			return s.object(t, m)
		}
		return s.component(t, func() *jsonschema.Schema { return s.object(t, m) })
	default:
		s.fail(fmt.Errorf("%s has no schema", t))
		return &jsonschema.Schema{}
	}
}

func (s *shapes) fail(err error) {
	s.err = cmp.Or(s.err, err)
}

// union returns the schema of an interface's possible types.
func (s *shapes) union(t reflect.Type, m mode) *jsonschema.Schema {
	members := s.o.OneOf[t]
	if len(members) == 0 {
		return &jsonschema.Schema{}
	}
	return s.component(t, func() *jsonschema.Schema {
		schema := &jsonschema.Schema{Description: s.o.Docs[t]}
		for _, member := range members {
			schema.OneOf = append(schema.OneOf, s.of(member.Type, m))
			if prop := s.components[s.name(member.Type)].Properties["type"]; prop != nil {
				prop.Const = jsonschema.Ptr(any(member.Value))
			} else {
				s.fail(fmt.Errorf("%s has no field type that tells it from the others", member.Type))
			}
		}
		return schema
	})
}

// component makes the schema once, under the type's name, and gives a reference.
func (s *shapes) component(t reflect.Type, make func() *jsonschema.Schema) *jsonschema.Schema {
	name := s.name(t)
	ref := &jsonschema.Schema{Ref: "#/components/schemas/" + name}
	if known, ok := s.names[name]; ok {
		if known != t {
			s.fail(fmt.Errorf("%s and %s would both be called %s", known, t, name))
		}
		return ref
	}
	s.names[name] = t
	s.components[name] = make()
	return ref
}

func (s *shapes) name(t reflect.Type) string {
	if s.o.Name != nil {
		if name := s.o.Name(t); name != "" {
			return name
		}
	}
	name, argument, generic := strings.Cut(t.Name(), "[")
	if generic { // List[chorus/x.Session] is a SessionList
		argument = strings.TrimSuffix(argument, "]")
		name = argument[strings.LastIndexAny(argument, "./")+1:] + name
	}
	return name
}

func (s *shapes) object(t reflect.Type, m mode) *jsonschema.Schema {
	schema := &jsonschema.Schema{Type: "object", Description: s.o.Docs[t], Properties: map[string]*jsonschema.Schema{}}
	if m != answer {
		schema.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	s.fields(schema, t, m)
	return schema
}

// fields adds a struct's fields, including those of embedded structs.
func (s *shapes) fields(schema *jsonschema.Schema, t reflect.Type, m mode) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && name == "" {
			s.fields(schema, f.Type, m)
			continue
		}
		name = cmp.Or(name, f.Name)
		prop := s.of(f.Type, m)
		if err := refine(prop, f.Tag); err != nil {
			s.fail(fmt.Errorf("%s.%s: %w", t, f.Name, err))
		}
		schema.Properties[name] = prop
		schema.PropertyOrder = append(schema.PropertyOrder, name)
		if !strings.Contains(rest, "omitempty") && !strings.Contains(rest, "omitzero") {
			schema.Required = append(schema.Required, name)
		}
	}
}

// refine applies the tags of a field.
func refine(schema *jsonschema.Schema, tag reflect.StructTag) error {
	if doc := tag.Get("doc"); doc != "" {
		schema.Description = doc
	}
	if values := tag.Get("enum"); values != "" {
		for v := range strings.SplitSeq(values, ",") {
			schema.Enum = append(schema.Enum, v)
		}
	}
	schema.Pattern = tag.Get("pattern")
	for name, into := range map[string]**float64{"min": &schema.Minimum, "max": &schema.Maximum} {
		if text := tag.Get(name); text != "" {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("tag %s: %w", name, err)
			}
			*into = &n
		}
	}
	for name, into := range map[string]**int{"minLen": &schema.MinLength, "maxLen": &schema.MaxLength, "minItems": &schema.MinItems, "maxItems": &schema.MaxItems} {
		if text := tag.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("tag %s: %w", name, err)
			}
			*into = &n
		}
	}
	return nil
}
