package operate

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"chorus/internal/operation"
)

// Schema returns the JSON Schema of an operation's input, in the form for a tool.
func Schema(d *operation.Definition) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, f := range d.Fields() {
		name, _, ok := f.In(operation.AsTool)
		if !ok {
			continue
		}
		s.Properties[name] = property(f)
		s.PropertyOrder = append(s.PropertyOrder, name)
		if f.Required {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

func property(f operation.Field) *jsonschema.Schema {
	s := typeSchema(f.Type)
	s.Description, s.Pattern, s.Minimum, s.Maximum = f.Doc, f.Pattern, f.Min, f.Max
	if s.Type == "array" {
		s.MinItems, s.MaxItems = f.MinLen, f.MaxLen
	} else {
		s.MinLength, s.MaxLength = f.MinLen, f.MaxLen
	}
	for _, value := range f.Enum {
		s.Enum = append(s.Enum, value)
	}
	return s
}

func typeSchema(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[json.RawMessage](), t == reflect.TypeFor[operation.JSON]():
		return &jsonschema.Schema{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem())
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &jsonschema.Schema{Type: "integer"}
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	case reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: typeSchema(t.Elem())}
	default:
		return &jsonschema.Schema{Type: "object"}
	}
}
