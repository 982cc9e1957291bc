package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/keep"
)

// keepCommand supervises a process that an agent left running. The server starts it; people do not type it.
func (c *program) keepCommand() *cobra.Command {
	return &cobra.Command{Use: keep.Arg + " DIR", Short: "Supervise a background process", Hidden: true, Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return keep.Main(args[0], os.Stdin, os.Stdout, c.judgeAlone(args[0]))
		}}
}

// judgeAlone judges the programs of a process when no server does. It opens the home for each judgement. That is rare, because an
// allowed program is not judged again, and a supervisor should not hold anything open for days.
func (c *program) judgeAlone(dir string) keep.Own {
	var one sync.Mutex
	return func(ctx context.Context, program sandbox.Exec) (ok bool, refused error) {
		one.Lock()
		defer one.Unlock()
		a, err := app.Open(ctx, app.Options{Env: c.getenv, Home: filepath.Dir(filepath.Dir(dir)), Version: version})
		if err != nil {
			return false, nil // a newer server changed the stored format; it will connect
		}
		refused, err = a.JudgeAlone(ctx, filepath.Base(dir), program)
		return errors.Join(err, a.Close()) == nil, refused
	}
}
