package operations_test

import (
	"testing"

	"chorus/internal/operations"
)

// Definitions are read late, so that a start costs nothing; here every one is read.
func TestEveryDefinitionIsWhole(t *testing.T) {
	t.Parallel()
	if err := operations.All().Check(); err != nil {
		t.Error(err)
	}
}
