package operationstest_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations/operationstest"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/store/storetest"
)

func TestMain(m *testing.M) {
	isolate.InsideSandbox(os.Args[1:]) // a sandbox may start us as its process 1
	goleak.VerifyTestMain(m)
}

// holder is somebody with a token.
func holder(name string, scopes ...operation.Scope) operation.Caller {
	c := operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: name, Name: name}, Scopes: scopes}
	if c.May(operation.Admin) {
		c.Principal.Roles = []string{"owner"}
	}
	return c
}

// open opens a home without any key.
func open(t *testing.T, dir string) *app.App {
	t.Helper()
	env := map[string]string{"USER": "ada", "HOME": dir}
	a, err := app.Open(t.Context(), app.Options{Env: func(key string) string { return env[key] }, Environ: []string{"PATH=/usr/bin:/bin"}, Home: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func ended(t *testing.T, a *app.App) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// TestLocal runs the suite on the executor of this process.
func TestLocal(t *testing.T) {
	t.Parallel()
	operationstest.Run(t, func(t *testing.T) operationstest.World {
		a := open(t, storetest.FreshHome(t))
		t.Cleanup(func() { ended(t, a) })
		return operationstest.World{
			Admin: holder("root", operation.Admin), Ada: holder("ada", operation.Chat, operation.Approve), Bo: holder("bo", operation.Chat, operation.Approve),
			Reader: holder("reader", operation.Read), Dir: t.TempDir(),
			As: func(operation.Caller) operation.Executor { return a.Service.Operations() },
		}
	})
}
