package app

import (
	"chorus/internal/model/catalog"
	"chorus/internal/modelrouter"
	"chorus/internal/provider"
	"maps"
	"slices"
	"testing"
)

func TestEveryProviderIsMade(t *testing.T) {
	t.Parallel()
	if made, known := slices.Sorted(maps.Keys(provider.Makers)), catalog.Names(nil); !slices.Equal(made, known) {
		t.Errorf("made are %v, the catalog has %v", made, known)
	}
	m := provider.NewModels(func(string) string { return "" }, "", "")
	for _, v := range modelrouter.BuiltIn(m.Env) {
		if p, err := m.Provide(v, modelrouter.Account{Key: "test-key"}); err != nil || p == nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}
