//go:build race

package discordtest

// raced: the race detector looks on, and everything takes several times as long.
const raced = true
