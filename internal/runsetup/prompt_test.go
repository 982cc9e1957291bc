package runsetup

import (
	"testing"

	"chorus/internal/chat"
)

// The model is told something about every mode, and about nothing else.
func TestModes(t *testing.T) {
	t.Parallel()
	if len(chat.ModeNames()) != len(modes) {
		t.Errorf("%v are not all modes", chat.ModeNames())
	}
	for _, mode := range chat.ModeNames() {
		if err := ValidMode(mode); err != nil {
			t.Error(err)
		}
	}
}
