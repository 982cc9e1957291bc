//go:build !chaos

package main

import "chorus/internal/app"

// injectFaults is the hook for crash tests. In normal builds it does nothing.
func injectFaults(*app.Options) {}
