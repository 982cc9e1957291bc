package checks

import (
	"strings"
	"testing"
)

func TestRootIsToldOf(t *testing.T) {
	t.Parallel()
	if AsRoot(1000) != "" || rootUser(1000) != nil {
		t.Error("an ordinary user is warned")
	}
	text, found := AsRoot(0), rootUser(0)
	if !strings.Contains(text, "chorus doctor") || !strings.Contains(rootFix, "User=chorus") || strings.Contains(text, "\n") || len(found) != 1 || found[0].Fix != rootFix {
		t.Errorf("%q %+v", text, found)
	}
}
