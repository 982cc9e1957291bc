//go:build race

package webtest

// raceFactor is how much slower the race detector may make things.
const raceFactor = 4
