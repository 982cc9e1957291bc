//go:build linux

package bwrap_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"chorus/internal/sandbox"
)

// TestRenamesFromOutside: somebody moves a repository, or what is guarded in it, while a command runs. What that command then
// writes there is still started by nobody.
func TestRenamesFromOutside(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	const person = `git init -q sub; git -C sub config alias.st status`
	for name, c := range map[string]struct{ setup, outside, inside, used string }{
		"a repository below":         {person, `mv sub sub2`, `EVIL >> sub2/.git/config; EVIL >> sub/.git/config`, "ws/sub2"},
		"its .git":                   {person, `mv sub/.git x; mv x sub/.git`, `EVIL >> sub/.git/config`, "ws/sub"},
		"a folder above it":          {`mkdir -p a/b; cd a/b; ` + person, `mv a z`, `EVIL >> z/b/sub/.git/config`, "ws/z/b/sub"},
		"the .git of the workspace":  {``, `mv .git x; mv x .git`, `EVIL >> .git/config; printf '#!/bin/sh\ntouch PROOF\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`, "ws"},
		"the hooks":                  {``, `mv .git/hooks .git/h; mv .git/h .git/hooks`, `printf '#!/bin/sh\ntouch PROOF\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`, "ws"},
		"the settings":               {``, `mv .git/config .git/c; mv .git/c .git/config`, `EVIL >> .git/config`, "ws"},
		"the workspace":              {``, `mv ../ws ../ws2`, `EVIL >> .git/config`, "ws2"},
		"another one into its place": {``, `cp -a ../ws ../ws3; mv ../ws ../old; mv ../ws3 ../ws`, `EVIL >> .git/config`, "old"},
		"a clone that was not there": {``, `git clone -q . late; git -C late config alias.st status`, `EVIL >> late/.git/config`, "ws/late"},
	} {
		base, fill := attack{setup: c.setup}.prepare(t)
		ws := filepath.Join(base, "ws")
		moved := sync.OnceFunc(func() {
			outsideGit(t, ws, c.outside)
			for _, dir := range []string{"ws", "ws2", "old"} { // wherever it is now
				_ = os.WriteFile(filepath.Join(base, dir, "go"), nil, 0o600)
			}
		})
		res := run(t, ex, sandbox.Command{Merge: true, Dir: ws, Shell: fill("echo up; until test -e go; do sleep 0.01; done; " + c.inside + "; echo tried"), OnOutput: func(string) { moved() }})
		if !strings.HasSuffix(res.Output, "tried\n") {
			t.Errorf("%s: the attempt itself is broken: %+v", name, res)
		}
		if (attack{used: c.used}).use(t, base) {
			t.Errorf("%s: git outside started it: %+v", name, res)
		}
	}
}
