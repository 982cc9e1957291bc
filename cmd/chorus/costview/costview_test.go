package costview

import (
	"testing"
)

func TestBar(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		used, most float64
		want       string
	}{
		{0, 5, "[--------------------]"}, {0.0001, 5, "[#-------------------]"}, {2.5, 5, "[##########----------]"},
		{4.9999, 5, "[###################-]"}, {5, 5, "[####################]"}, {9, 5, "[####################]"}, {0, 0, "[--------------------]"}, {1, 0, "[####################]"},
	} {
		if got := bar(c.used, c.most, barWidth); got != c.want {
			t.Errorf("%v of %v: %s", c.used, c.most, got)
		}
	}
}
