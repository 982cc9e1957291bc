package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"chorus/internal/suggest"
)

// explain lists everything that is wrong with a tree, in the order of the text.
func explain(data []byte, s *jsonschema.Schema, n node, field string) (wrong []FieldError) {
	if said := wrongType(s, n.value()); said != "" {
		return []FieldError{place(data, n.at, field, said)}
	}
	switch n.token {
	case json.Delim('{'):
		return explainObject(data, s, n, field)
	case json.Delim('['):
		if s.MaxItems != nil && len(n.items) > *s.MaxItems {
			return []FieldError{place(data, n.at, field, fmt.Sprintf("there are %d items; at most %d are allowed", len(n.items), *s.MaxItems))}
		}
		if s.MinItems != nil && len(n.items) < *s.MinItems {
			return []FieldError{place(data, n.at, field, fmt.Sprintf("there must be at least %d items", *s.MinItems))}
		}
		for i, item := range n.items {
			if s.Items != nil {
				wrong = append(wrong, explain(data, s.Items, item, fmt.Sprintf("%s[%d]", field, i))...)
			}
		}
		return wrong
	}
	if said := constraint(s, n.token, ""); said != "" {
		return []FieldError{place(data, n.at, field, said)}
	}
	return nil
}

func explainObject(data []byte, s *jsonschema.Schema, n node, field string) (wrong []FieldError) {
	names := slices.Sorted(maps.Keys(s.Properties))
	given := map[string]bool{}
	for _, m := range n.fields {
		given[m.name] = true
		prop := s.Properties[m.name]
		if prop != nil {
			wrong = append(wrong, explain(data, prop, m.node, join(field, m.name))...)
			continue
		}
		if s.AdditionalProperties == nil || s.AdditionalProperties.Not == nil {
			continue // a map: any name is allowed
		}
		said := "there is no such field"
		if hint := suggest.Hint(m.name, names); hint != "" {
			said += hint
		} else if len(names) > 0 {
			said += "; there are " + strings.Join(names, ", ")
		}
		wrong = append(wrong, place(data, m.at, join(field, m.name), said))
	}
	for _, name := range s.Required {
		if !given[name] {
			wrong = append(wrong, place(data, n.at, join(field, name), "it is required"))
		}
	}
	return wrong
}

// wrongType reports a value of the wrong type.
func wrongType(s *jsonschema.Schema, value any) string {
	want := s.Types
	if s.Type != "" {
		want = []string{s.Type}
	}
	got := kind(value)
	if len(want) == 0 || slices.Contains(want, got) || got == "integer" && slices.Contains(want, "number") {
		return ""
	}
	return fmt.Sprintf("it must be %s, not %s", article(want[0]), article(got))
}

func kind(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func article(typ string) string {
	switch typ {
	case "null":
		return typ
	case "integer":
		return "a whole number"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "boolean":
		return "true or false"
	}
	return "a " + typ
}

// constraint reports which limit a plain value breaks, or else returns otherwise.
func constraint(s *jsonschema.Schema, value any, otherwise string) string {
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		return oneOf(s.Enum, value)
	}
	switch v := value.(type) {
	case string:
		n := utf8.RuneCountInString(v)
		switch {
		case s.MinLength != nil && n < *s.MinLength && *s.MinLength == 1:
			return "it must not be empty"
		case s.MinLength != nil && n < *s.MinLength:
			return fmt.Sprintf("it must have at least %d characters", *s.MinLength)
		case s.MaxLength != nil && n > *s.MaxLength:
			return fmt.Sprintf("it has %d characters; at most %d are allowed", n, *s.MaxLength)
		}
		if s.Pattern != "" {
			if ok, err := regexp.MatchString(s.Pattern, v); err == nil && !ok {
				return "it must match " + s.Pattern
			}
		}
	case float64:
		switch {
		case s.Minimum != nil && v < *s.Minimum:
			return "it must be at least " + number(*s.Minimum)
		case s.Maximum != nil && v > *s.Maximum:
			return "it must be at most " + number(*s.Maximum)
		}
	}
	return otherwise
}

func oneOf(values []any, got any) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = fmt.Sprint(v)
	}
	text, _ := got.(string)
	said := "it must be one of " + strings.Join(names, ", ")
	if best := suggest.Best(text, names); best != "" && text != "" {
		said += fmt.Sprintf("; did you mean %q?", best)
	}
	return said
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
