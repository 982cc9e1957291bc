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

// keepCommand is what the server starts for each process that agents leave running. People do not type it.
func (c *program) keepCommand() *cobra.Command {
	return &cobra.Command{Use: keep.Arg + " DIR", Short: "Supervise a background process", Hidden: true, Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return keep.Main(args[0], os.Stdin, os.Stdout, c.judgeAlone(args[0]))
		}}
}

// judgeAlone judges the programs of a process while no server does. The home is opened for each: that is rare, because a program
// that was allowed is not asked about again, and a keeper should hold nothing open for days.
func (c *program) judgeAlone(dir string) keep.Own {
	var one sync.Mutex
	return func(ctx context.Context, program sandbox.Exec) (ok bool, refused error) {
		one.Lock()
		defer one.Unlock()
		a, err := app.Open(ctx, app.Options{Env: c.getenv, Home: filepath.Dir(filepath.Dir(dir)), Version: version})
		if err != nil {
			return false, nil // a newer server has changed what it keeps; it will connect
		}
		refused, err = a.JudgeAlone(ctx, filepath.Base(dir), program)
		return errors.Join(err, a.Close()) == nil, refused
	}
}
