//go:build !chaos

package main

import "chorus/internal/app"

// hook is where the crash tests reach in; the program that people run has none.
func hook(*app.Options) {}
