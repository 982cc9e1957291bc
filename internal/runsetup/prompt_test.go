package runsetup

import "testing"

// Modes and what the model is told about them are two lists.
func TestModes(t *testing.T) {
	t.Parallel()
	if len(Modes()) != len(modes) {
		t.Errorf("%v are not all modes", Modes())
	}
	for _, mode := range Modes() {
		if err := ValidMode(mode); err != nil {
			t.Error(err)
		}
	}
}
