package openai

import (
	"flag"
	"testing"

	"chorus/internal/model/modeltest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGolden(t *testing.T) {
	t.Parallel()
	for folder, m := range map[string]modeltest.Maker{"chat": chatMaker, "responses": responsesMaker, "openrouter": routerMaker} {
		m.Golden = folder
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			modeltest.Golden(t, m, *update)
		})
	}
}
