package mcp

import (
	"fmt"
	"testing"

	"chorus/internal/chat"
)

// A form asks for what the schema of a question asks for, with what is meant where nothing is said, and what was said before.
func TestQuestionsAsForms(t *testing.T) {
	t.Parallel()
	q := Question{Fields: fieldsOf(map[string]any{"required": []string{"size", "count"}, "properties": map[string]any{
		"size":  map[string]any{"type": "string", "title": "Size", "enum": []string{"S", "M"}, "enumNames": []string{"small", "medium"}},
		"count": map[string]any{"type": "integer", "description": "How many"},
		"gift":  map[string]any{"type": "boolean", "default": true},
		"tags":  map[string]any{"type": "array", "title": "Tags", "description": "Of the parcel", "items": map[string]any{"enum": []string{"a", "b"}}, "default": []any{"a"}},
		"note":  map[string]any{"type": "string", "title": "Note", "description": "For the sender"},
	}})}
	if _, err := q.read("size: M\ncount: many"); err == nil {
		t.Fatal("an answer that does not fit is taken")
	}
	q.Given = map[string]any{"size": "M", "count": "many", "tags": "a, b"}
	want := []chat.Field{
		{Name: "count", Label: "count", Hint: "How many", Kind: "integer", Values: []string{"many"}},
		{Name: "size", Label: "Size", Choices: []chat.Choice{{Value: "S", Label: "small"}, {Value: "M", Label: "medium"}}, Values: []string{"M"}},
		{Name: "gift", Label: "gift", Kind: "boolean", Choices: []chat.Choice{{Value: "yes", Label: "Yes"}, {Value: "no", Label: "No"}}, Optional: true, Values: []string{"yes"}},
		{Name: "note", Label: "Note", Hint: "For the sender", Optional: true},
		{Name: "tags", Label: "Tags", Hint: "Of the parcel", Kind: "list", Several: true, Optional: true, Choices: []chat.Choice{{Value: "a", Label: "a"}, {Value: "b", Label: "b"}}, Values: []string{"a", "b"}},
	}
	got := q.Asked()
	for i := range want {
		if i >= len(got) || fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want[i]) {
			t.Fatalf("field %d of %+v is not %+v", i, got, want[i])
		}
	}
}

// Bounds of the schema are those of the field; what makes no sense is none.
func TestQuestionsHaveBounds(t *testing.T) {
	t.Parallel()
	q := Question{Fields: fieldsOf(map[string]any{"properties": map[string]any{
		"a": map[string]any{"type": "integer", "minimum": 1, "maximum": 10.5},
		"b": map[string]any{"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^x"},
		"c": map[string]any{"type": "string", "format": "email", "minLength": -3},
		"d": map[string]any{"type": "string", "format": "cuneiform"},
		"e": map[string]any{"type": "array", "minItems": 1, "maxItems": 2, "items": map[string]any{"enum": []string{"x", "y", "z"}}},
	}})}
	for answer, want := range map[string]string{
		"a: 0": "a must be at least 1", "a: 11": "a must be at most 10.5", "a: 10": "", "b: y": "b must have at least 2 characters, not 1", "b: yy": "b must match ^x", "b: xx": "",
		"c: ada": `c must be an email address, as ada@example.org, not "ada"`, "d: anything": "", "e: x, y, z": "e must have at most 2 values, not 3",
	} {
		got := ""
		if _, err := q.read(answer); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, not %q", answer, got, want)
		}
	}
}
