package completions

import (
	"flag"
	"testing"

	"chorus/internal/model/modeltest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGolden(t *testing.T) {
	t.Parallel()
	modeltest.Golden(t, maker, *update)
}
