//go:build !linux

package repl

import "io"

// discardTyped does nothing where the terminal cannot be asked to forget.
func discardTyped(io.Reader) {}
