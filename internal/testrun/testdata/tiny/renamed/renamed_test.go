package renamed

import (
	"os"
	"strconv"
	"testing"
)

// TestOfNewNames has a subtest that cannot be chosen by its name a second time.
func TestOfNewNames(t *testing.T) {
	t.Run(strconv.Itoa(os.Getpid()), func(t *testing.T) { t.Error("as always") })
}
