//go:build !chaos

package main

import "chorus/internal/app"

// injectFaults is where the crash tests reach in; the program that people run has none.
func injectFaults(*app.Options) {}
