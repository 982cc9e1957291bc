package tool

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"
)

// externalChecker checks arguments against a schema that somebody else wrote, in any draft. Parts
// that cannot be read are not checked here; their owner will check them.
func externalChecker(raw json.RawMessage) (*checker, error) {
	schema := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, schema); err != nil {
		if schema, err = readable(raw); err != nil {
			return nil, err
		}
	}
	for name, prop := range schema.Properties {
		if prop == nil {
			schema.Properties[name] = new(jsonschema.Schema)
		}
	}
	chk := newChecker(schema)
	chk.sorted, chk.external = true, true
	// A reference may lead back to itself. The validator would follow it until
	// the stack overflows, which cannot be recovered from.
	chk.shallow = bytes.Contains(raw, []byte(`Ref"`)) || bytes.Contains(raw, []byte(`ref"`)) || bytes.Contains(raw, []byte(`\u`))
	return chk, nil
}

// readable returns what can be read of a schema that is unreadable as a whole: the
// names of the parameters, their types, and which are required.
func readable(raw json.RawMessage) (*jsonschema.Schema, error) {
	var top struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   json.RawMessage            `json:"required"`
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return nil, errors.New("it must be a JSON object")
	}
	schema := &jsonschema.Schema{Type: "object"}
	if json.Unmarshal(raw, &top) != nil {
		return schema, nil
	}
	_ = json.Unmarshal(top.Required, &schema.Required) // a draft 3 schema has a boolean here
	schema.Properties = map[string]*jsonschema.Schema{}
	for name, raw := range top.Properties {
		prop := new(jsonschema.Schema)
		if json.Unmarshal(raw, prop) != nil {
			prop = new(jsonschema.Schema)
			var plain struct {
				Type        string `json:"type"`
				Description string `json:"description"`
			}
			if json.Unmarshal(raw, &plain) == nil {
				prop.Type, prop.Description = plain.Type, plain.Description
			}
		}
		schema.Properties[name] = prop
	}
	return schema, nil
}
