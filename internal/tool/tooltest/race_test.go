//go:build race

package tooltest_test

// raceFactor is how much slower the race detector may make things.
const raceFactor = 10
