package mcp

import (
	"cmp"
	"fmt"
	"strings"

	"chorus/internal/chat"
)

// Asked returns the fields of a question as forms show them, filled
// with the earlier answers or else the defaults.
func (q Question) Asked() (out []chat.Field) {
	for _, f := range q.Fields {
		field := chat.Field{Name: f.Name, Label: cmp.Or(f.Title, printable(f.Name, 100)), Hint: f.hint(), Kind: f.kind(), Several: f.Kind == "list" && len(f.Choices) > 0, Optional: !f.Required || f.Default != nil, Bounds: f.Bounds}
		for _, c := range f.Choices {
			field.Choices = append(field.Choices, chat.Choice{Value: c.Value, Label: printable(cmp.Or(c.Title, c.Value), 100)})
		}
		if f.Kind == "boolean" {
			field.Choices = []chat.Choice{{Value: "yes", Label: "Yes"}, {Value: "no", Label: "No"}}
		}
		value := f.Default
		if given, ok := q.Given[f.Name]; ok {
			value = given
		}
		if field.Values = texts(value); field.Several && len(field.Values) == 1 {
			field.Values = strings.Split(strings.ReplaceAll(field.Values[0], ", ", ","), ",") // as people write them
		}
		out = append(out, field)
	}
	return out
}

// kind returns the field's kind as forms name it.
func (f Field) kind() string {
	switch f.Kind {
	case "integer", "number", "boolean", "list":
		return f.Kind
	}
	return ""
}

// hint says what a field is for.
func (f Field) hint() string {
	_, about, titled := strings.Cut(f.About, ": ")
	if !titled || f.Title == "" || !strings.HasPrefix(f.About, f.Title) {
		about = f.About
	}
	if about == f.Title {
		about = ""
	}
	return about
}

// texts returns a value as people write it.
func texts(value any) (out []string) {
	switch v := value.(type) {
	case nil:
		return nil
	case bool:
		if v {
			return []string{"yes"}
		}
		return []string{"no"}
	case []any:
		for _, one := range v {
			out = append(out, fmt.Sprint(one))
		}
		return out
	default:
		return []string{fmt.Sprint(v)}
	}
}
