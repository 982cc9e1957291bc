// Package mcplogin waits at a terminal until a login that a server has begun is over.
package mcplogin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// questionSeconds is how long one question after the end of a login waits for its answer.
const questionSeconds = 25

// Wait waits until the browser has come back to the server, or until somebody types where it ended: that is read from in, which may go on
// being read when Wait has returned.
func Wait(ctx context.Context, to operation.Executor, login operations.MCPLogin, in io.Reader, warn func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- untilOver(ctx, to, login, warn) }()
	go typedRedirects(ctx, to, in, warn, ended)
	return <-ended
}

// untilOver waits until a login is over. A server that is gone may come back, and says then that it knows of no login.
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
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
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

// typedRedirects hands over what somebody types. A line that is no such address is told, and another may be typed. The end of
// what is typed is not the end of the wait.
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
