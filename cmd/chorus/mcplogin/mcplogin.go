// Package mcplogin waits at a terminal for a login that a server has started.
package mcplogin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// questionSeconds is how long one request for the end of a login waits.
const questionSeconds = 25

// Wait waits until the browser has returned to the server, or somebody types where it ended. It reads that from in, and may keep reading
// after it returns.
func Wait(ctx context.Context, to operation.Executor, login operations.MCPLogin, in io.Reader, warn func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- untilOver(ctx, to, login, warn) }()
	go typedRedirects(ctx, to, in, warn, ended)
	return <-ended
}

// untilOver waits until a login ends. A server that went away may come back, and then does not know the login.
func untilOver(ctx context.Context, to operation.Executor, login operations.MCPLogin, warn func(string)) error {
	gone := false
	for {
		now, err := operations.MCPLoginState.Call(ctx, to, operation.Caller{}, operations.MCPLoginRef{ID: login.ID, Wait: questionSeconds})
		switch {
		case operation.KindOf(err) == operation.Unavailable && time.Now().Before(login.ExpiresAt):
			if !gone {
				warn(err.Error())
				warn("waiting for the server to come back")
			}
			gone = true
			if !await.For(ctx, time.Second) {
				return ctx.Err()
			}
		case err != nil:
			return err
		case now.State == operations.LoginDone:
			return nil
		case now.State == operations.LoginFailed:
			return errors.New(now.Error)
		}
	}
}

// typedRedirects submits what somebody types. After an invalid address it prints the error and reads the next line. The end of the input
// does not end the wait.
func typedRedirects(ctx context.Context, to operation.Executor, in io.Reader, warn func(string), ended chan<- error) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		_, err := operations.FinishMCPLogin.Call(ctx, to, operation.Caller{}, operations.MCPLoginReturn{Redirect: line})
		if kind := operation.KindOf(err); ctx.Err() == nil && (kind == operation.Invalid || kind == operation.NotFound) {
			warn(err.Error())
			continue
		}
		ended <- err
		return
	}
}
