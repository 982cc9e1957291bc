package discordtest

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/sandbox/isolate"
)

func TestMain(m *testing.M) {
	if code, ours := isolate.LaunchSandboxed(os.Args[1:]); ours { // sandboxed commands are started by this binary
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
