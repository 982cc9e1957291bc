//go:build !linux

// Package inside is what runs inside a sandbox as its process 1. On this system there is none.
package inside

import "os"

// Main is never called here.
func Main() { os.Exit(1) }
