package provider

import (
	"maps"
	"slices"
	"testing"

	"chorus/internal/model/catalog"
)

func TestEveryProviderIsMade(t *testing.T) {
	t.Parallel()
	if made, known := slices.Sorted(maps.Keys(makers)), catalog.Names(nil); !slices.Equal(made, known) {
		t.Errorf("made are %v, the catalog has %v", made, known)
	}
}

// env is an environment with these variables and nothing else.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}
