package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"chorus/internal/text"
)

// Mistake is an error made by the model. Its text is an answer from which the model can correct it.
type Mistake string

// Error returns the answer.
func (m Mistake) Error() string { return string(m) }

// Answer is what Run returns for an error: a Mistake becomes an answer
// to the model, anything else is an error of ours.
func Answer(err error) (Result, error) {
	if m, ok := errors.AsType[Mistake](err); ok {
		return Fail(m.Error()), nil
	}
	return Result{}, err
}

// FailOrEnd is what Run returns if the model is told about every
// error. If the context has ended, it ends the run.
func FailOrEnd(ctx context.Context, err error) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	return Fail(err.Error()), nil
}

// checker checks arguments against one schema. It corrects what can only be meant one
// way and explains the rest, so that a model can correct itself.
type checker struct {
	schema   *jsonschema.Schema
	sorted   bool // arguments are what is judged, so their keys are always sorted
	shallow  bool // only names and types are checked
	external bool // somebody else's schema, which may make the validator panic
	once     sync.Once
	resolved *jsonschema.Resolved // nil if the schema cannot be resolved; then only names and types are checked
}

func newChecker(schema *jsonschema.Schema) *checker { return &checker{schema: schema} }

// object reads arguments as a JSON object. Empty arguments and null become an empty object, and a JSON
// string that contains an object becomes that object, because models send both.
func object(name string, args []byte) ([]byte, map[string]json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	for range 2 {
		if len(args) == 0 || string(args) == "null" {
			args = []byte("{}")
		}
		if args[0] != '"' {
			break
		}
		var inner string
		if err := json.Unmarshal(args, &inner); err != nil {
			break
		}
		args = bytes.TrimSpace([]byte(inner))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(args, &fields); err != nil || fields == nil {
		return nil, nil, fmt.Errorf("the arguments of %s must be one JSON object", name)
	}
	return args, fields, nil
}

// correct returns the arguments with harmless slips corrected: names in another spelling, numbers and
// booleans written as strings, a single value for a list, null for something optional.
func (c *checker) correct(name string, args []byte) ([]byte, error) {
	args, fields, err := object(name, args)
	if err != nil {
		return nil, Mistake(c.explain(name, "they must be one JSON object"))
	}
	changed := c.rename(fields)
	for key, raw := range fields {
		prop := c.schema.Properties[key]
		if prop == nil {
			continue
		}
		if string(raw) == "null" && !slices.Contains(c.schema.Required, key) && len(prop.Types) == 0 {
			delete(fields, key)
			changed = true
			continue
		}
		if better, ok := coerce(prop, raw); ok {
			fields[key] = better
			changed = true
		}
	}
	if changed {
		if args, err = json.Marshal(fields); err != nil { // keys are sorted, so the result is deterministic
			return nil, err
		}
	}
	if c.sorted {
		if sorted, ok := text.SortedJSON(args); ok {
			args = sorted
		}
	}
	return args, nil
}

// rename corrects the spelling of parameter names: filePath for file_path and so on.
func (c *checker) rename(fields map[string]json.RawMessage) bool {
	changed := false
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if c.schema.Properties[key] != nil {
			continue
		}
		for _, want := range slices.Sorted(maps.Keys(c.schema.Properties)) {
			if _, there := fields[want]; !there && squash(want) == squash(key) {
				fields[want] = fields[key]
				delete(fields, key)
				changed = true
				break
			}
		}
	}
	return changed
}

func squash(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// coerce converts raw to the type that prop requires if that loses nothing.
func coerce(prop *jsonschema.Schema, raw json.RawMessage) (json.RawMessage, bool) {
	var text string
	isText := len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil
	trimmed := strings.TrimSpace(text)
	switch prop.Type {
	case "integer":
		if !isText {
			trimmed = string(raw)
		}
		if f, err := strconv.ParseFloat(trimmed, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			whole := strconv.FormatInt(int64(f), 10)
			return json.RawMessage(whole), whole != string(raw)
		}
	case "number":
		if f, err := strconv.ParseFloat(trimmed, 64); isText && err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return json.RawMessage(strconv.FormatFloat(f, 'g', -1, 64)), true
		}
	case "boolean":
		if low := strings.ToLower(trimmed); isText && (low == "true" || low == "false") {
			return json.RawMessage(low), true
		}
	case "string":
		if len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
			return json.RawMessage(`"` + string(raw) + `"`), true
		}
	case "array":
		if isText && strings.HasPrefix(trimmed, "[") && json.Valid([]byte(trimmed)) {
			return json.RawMessage(trimmed), true
		}
		if isText && prop.Items != nil && prop.Items.Type == "string" {
			return slices.Concat([]byte("["), raw, []byte("]")), true
		}
	}
	return nil, false
}

// check returns what is wrong with the arguments, or nil. The text is for the model.
func (c *checker) check(name string, args []byte) error {
	_, fields, err := object(name, args)
	if err != nil {
		return Mistake(c.explain(name, "they must be one JSON object"))
	}
	var wrong []string
	for _, key := range c.schema.Required {
		if _, ok := fields[key]; !ok {
			wrong = append(wrong, fmt.Sprintf("'%s' is missing", key))
		}
	}
	closed := c.schema.AdditionalProperties != nil && c.schema.AdditionalProperties.Not != nil
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		prop := c.schema.Properties[key]
		switch {
		case prop == nil && closed:
			wrong = append(wrong, fmt.Sprintf("there is no parameter '%s'", key))
		case prop != nil && prop.Type != "" && !fits(prop.Type, fields[key]):
			wrong = append(wrong, fmt.Sprintf("'%s' must be %s, not %s", key, article(prop.Type), kind(fields[key])))
		}
	}
	if len(wrong) == 0 {
		wrong = c.deeper(args)
	}
	if len(wrong) > 0 {
		return Mistake(c.explain(name, strings.Join(wrong, "; ")))
	}
	return nil
}

// deeper uses the full validator for everything beyond names and types.
func (c *checker) deeper(args []byte) (wrong []string) {
	if c.shallow {
		return nil
	}
	if c.external {
		defer func() {
			if recover() != nil { // for example a null where a schema belongs
				wrong = nil
			}
		}()
	}
	c.once.Do(func() {
		if resolved, err := c.schema.Resolve(nil); err == nil {
			c.resolved = resolved
		}
	})
	if c.resolved == nil {
		return nil
	}
	var value any
	if json.Unmarshal(args, &value) != nil {
		return nil
	}
	if err := c.resolved.Validate(value); err != nil {
		text := strings.TrimPrefix(err.Error(), "validating root: ")
		return []string{strings.ReplaceAll(text, "validating /properties/", "")}
	}
	return nil
}

// explain returns the answer to wrong arguments: what is wrong, and
// each parameter with its type and description.
func (c *checker) explain(name, what string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Invalid arguments for %s: %s.\n", name, what)
	names := c.schema.PropertyOrder
	if len(names) != len(c.schema.Properties) {
		names = slices.Sorted(maps.Keys(c.schema.Properties))
	}
	if len(names) == 0 {
		out.WriteString("It takes no parameters: {}")
		return out.String()
	}
	out.WriteString("Parameters:")
	for _, key := range names {
		prop := c.schema.Properties[key]
		need := "optional"
		if slices.Contains(c.schema.Required, key) {
			need = "required"
		}
		typ := cmp.Or(prop.Type, "any")
		fmt.Fprintf(&out, "\n- '%s' (%s, %s)", key, typ, need)
		if prop.Description != "" {
			out.WriteString(": " + prop.Description)
		}
		if len(prop.Enum) > 0 {
			fmt.Fprintf(&out, "; one of %v", prop.Enum)
		}
	}
	return out.String()
}

func fits(typ string, raw json.RawMessage) bool {
	got := kind(raw)
	return got == typ || typ == "number" && got == "integer"
}

// kind returns the JSON Schema type of a raw value.
func kind(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && f == math.Trunc(f) {
		return "integer"
	}
	return "number"
}

func article(typ string) string {
	if strings.ContainsRune("aeiou", rune(typ[0])) {
		return "an " + typ
	}
	return "a " + typ
}
