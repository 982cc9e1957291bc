// Package await lets a goroutine wait for a time or for a word from another one.
package await

import (
	"context"
	"time"
)

// For waits as long as d; false: ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// Notify puts a value into a channel that holds one, unless one is already waiting there. It never blocks.
func Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
