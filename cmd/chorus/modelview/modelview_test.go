package modelview

import (
	"bytes"
	"strings"
	"testing"

	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

// TestServerModelsNameTheVendors: over a server the vendors stand first too, with whether they have a key.
func TestServerModelsNameTheVendors(t *testing.T) {
	t.Parallel()
	for _, width := range []int{0, 80} {
		var out bytes.Buffer
		err := ShowServer(cli.View{Out: &out, Width: width}, []operations.Model{{Name: "a/one", Ready: true, ContextWindow: 200000}, {Name: "a/two", Ready: true}, {Name: "b/three"}})
		if err != nil {
			t.Fatal(err)
		}
		vendors, models, _ := strings.Cut(out.String(), "\n\n")
		lines := strings.Split(vendors, "\n")
		if len(lines) != 3 || strings.Join(strings.Fields(lines[1]), " ") != "a ready 2" || strings.Join(strings.Fields(lines[2]), " ") != "b none 1" {
			t.Errorf("%q", lines)
		}
		if !strings.Contains(models, "a/one") || strings.Contains(models, "OUTPUT") != (width == 0) {
			t.Errorf("%q", models)
		}
	}
}
