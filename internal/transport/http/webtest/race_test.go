//go:build race

package webtest

// slower is how much the race detector may cost.
const slower = 4
