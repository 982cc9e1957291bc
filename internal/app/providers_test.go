package app

import (
	"maps"
	"slices"
	"testing"

	"chorus/internal/model/catalog"
	"chorus/internal/modelrouter"
)

func TestEveryProviderIsMade(t *testing.T) {
	t.Parallel()
	if made, known := slices.Sorted(maps.Keys(makers)), catalog.Names(nil); !slices.Equal(made, known) {
		t.Errorf("made are %v, the catalog has %v", made, known)
	}
	m := NewModels(func(string) string { return "" }, "", "")
	for _, v := range modelrouter.BuiltIn(m.env) {
		if p, err := m.provide(v, modelrouter.Account{Key: "test-key"}); err != nil || p == nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}
