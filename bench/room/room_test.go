package room

import (
	"testing"
	"time"
)

func TestScript(t *testing.T) {
	t.Parallel()
	said, answers := 0, 0
	for _, line := range Script() {
		said++
		if line.Asks {
			answers++
			if len(line.Answer)/4 > 200 {
				t.Errorf("an answer of %d characters", len(line.Answer))
			}
		}
	}
	if said+answers != Messages || answers != Answers {
		t.Errorf("%d said, %d answers", said, answers)
	}
}

func TestCacheHolds(t *testing.T) {
	t.Parallel()
	got, err := Cache(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	naive, err := Naive(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("all %.1f%%, growing %.1f%%, between rolls %.1f%%, %d rolls, %d tokens; sliding %.1f%%",
		100*got.All, 100*got.Growing, 100*got.Between, got.Rolls, got.Tokens, 100*naive.All)
	if got.All < 0.88 || got.Between < 0.97 || got.Rolls == 0 || naive.All >= got.All {
		t.Errorf("got %+v, sliding %+v", got, naive)
	}
}

func TestBuildIsQuick(t *testing.T) {
	t.Parallel()
	got, err := Build(t.Context(), t.TempDir(), 1000, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", got)
	if got.Warm > 50*time.Millisecond { // the bar is 2 ms; this is a test, perhaps on a busy machine and with the race detector
		t.Errorf("building takes %s", got.Warm)
	}
}
