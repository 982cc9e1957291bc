package runsetup

import (
	"fmt"
	"testing"

	"chorus/internal/model"
)

// Heads that are used stay at hand, and never more than a few.
func TestHeadsAtHand(t *testing.T) {
	t.Parallel()
	var h promptCache
	used := new(model.Head)
	h.keep("used", used)
	for i := range 3 * maxPromptHeads {
		h.keep(fmt.Sprint(i), new(model.Head))
		if h.at("used") != used {
			t.Fatalf("what is used was let go of after %d others", i+1)
		}
	}
	if len(h.list) != maxPromptHeads || h.at("0") != nil {
		t.Errorf("%d heads are kept", len(h.list))
	}
}
