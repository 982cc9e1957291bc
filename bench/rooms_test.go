package main

import (
	"path/filepath"
	"testing"

	"chorus/bench/room"
)

// The bars of a room hold in either style; what takes long is left to `make bench`.
func TestRoomBars(t *testing.T) {
	t.Parallel()
	for name, wrap := range styles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := room.Cache(t.Context(), filepath.Join(t.TempDir(), "room"), wrap)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("all %.1f%%, growing %.1f%%, between rolls %.1f%%, %d rolls", 100*got.All, 100*got.Growing, 100*got.Between, got.Rolls)
			if 100*got.All < barCached || 100*got.Between < barBetween || got.Rolls == 0 {
				t.Errorf("got %+v", got)
			}
			sliding, err := room.Naive(t.Context(), wrap)
			if err != nil || sliding.All > got.All {
				t.Errorf("sliding %+v, %v", sliding, err)
			}
		})
	}
}
