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
