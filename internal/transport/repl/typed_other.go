//go:build !linux

package repl

import "io"

// discardTyped does nothing here: there is no way to drop the terminal's input.
func discardTyped(io.Reader) {}
