package discordtest

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/sandbox/isolate"
	"chorus/internal/sandbox/keep"
)

func TestMain(m *testing.M) {
	isolate.InsideSandbox(os.Args[1:])               // a sandbox may start us as its process 1
	if len(os.Args) == 3 && os.Args[1] == keep.Arg { // a process that an agent left running has us look after it
		if keep.Main(os.Args[2], os.Stdin, os.Stdout, nil) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if process := os.Getenv(shopProcess); process != "" { // an agent has us as an MCP server
		serveShop(process)
	}
	goleak.VerifyTestMain(m)
}
