//go:build !race

package webtest

// slower is how much the race detector may cost: it is not here.
const slower = 1
