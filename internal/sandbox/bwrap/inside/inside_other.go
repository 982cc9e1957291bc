//go:build !linux

// Package inside is what runs inside of a sandbox as its process 1; there is none here.
package inside

import "os"

// Main is never called here.
func Main() { os.Exit(1) }
