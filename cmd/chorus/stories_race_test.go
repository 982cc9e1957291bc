package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// The race detector makes every start of the program ten times as long, and stories start
// it seven hundred times. So under -race the program of a story is built without it, but
// for those stories in which most happens at once. With STORIES_RACE=1 (make race) it looks at all of them.
var racing = []string{
	"chat_reload", "discord_serve", "loop_parallel_and_denial", "mcp_servers", "server_client", "serve_bad_requests", "steer_and_abort", "term_steer_and_stop",
	"two_processes",
}

// unraced puts the quick program in front of the one that is watched.
func unraced(env *testscript.Env) error {
	name := filepath.Base(env.WorkDir)
	if !raced || os.Getenv("STORIES_RACE") != "" || slices.ContainsFunc(racing, func(r string) bool { return name == "script-"+r }) {
		return nil
	}
	dir, err := quick.build()
	if err != nil {
		return err
	}
	env.Setenv("PATH", dir+string(os.PathListSeparator)+env.Getenv("PATH"))
	return nil
}

// quick is the program without the race detector: this test itself, which is the program
// when it is called so.
var quick quickProgram

type quickProgram struct {
	once sync.Once
	dir  string
	err  error
}

// build gives the folder it lies in.
func (q *quickProgram) build() (string, error) {
	q.once.Do(func() {
		if q.dir, q.err = os.MkdirTemp("", "chorus-stories-"); q.err != nil {
			return
		}
		program := filepath.Join(q.dir, "chorus")
		build := exec.Command("go", "test", "-c", "-tags", "grpcnotrace", "-trimpath", "-ldflags=-s -w", "-vet=off", "-o", program, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does: what is compiled is used again
		if text, err := build.CombinedOutput(); err != nil {
			q.err = fmt.Errorf("build the program of the stories: %w\n%s", err, text)
			return
		}
		for _, name := range []string{"nopoll", "mcpserver"} {
			q.err = errors.Join(q.err, os.Symlink(program, filepath.Join(q.dir, name)))
		}
	})
	return q.dir, q.err
}

func (q *quickProgram) remove() {
	if q.dir != "" {
		_ = os.RemoveAll(q.dir) // what it held can be made again
	}
}
