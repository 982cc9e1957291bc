package components

import (
	"testing"

	"chorus/internal/sim/discordsim/jsonobject"
)

func TestFindComponent(t *testing.T) {
	t.Parallel()
	list := []object{
		{"components": []any{map[string]any{"custom_id": "in a row"}, map[string]any{"custom_id": ""}}},
		{"accessory": map[string]any{"custom_id": "beside a text"}},
		{"component": map[string]any{"components": []any{map[string]any{"custom_id": "deep"}}}},
		{"custom_id": "at the top"},
	}
	for id, want := range map[string]bool{"in a row": true, "beside a text": true, "deep": true, "at the top": true, "nowhere": false, "": false} {
		if found := Find(list, id); (found != nil) != want || want && jsonobject.Text(found, "custom_id") != id {
			t.Errorf("%q finds %v", id, found)
		}
	}
}
