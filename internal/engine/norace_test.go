//go:build !race

package engine_test

// each is how many calls through a way out are made to hang, one after the other.
const each = 2
