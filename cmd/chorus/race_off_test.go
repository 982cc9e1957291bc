//go:build !race

package main

// raced: the race detector looks on.
const raced = false
