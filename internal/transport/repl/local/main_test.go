package local_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/sandbox/isolate"
)

func TestMain(m *testing.M) {
	isolate.InsideSandbox(os.Args[1:]) // a sandbox may start us as its process 1
	goleak.VerifyTestMain(m)
}
