// Package discordtest tests the whole program on Discord: what people do in a simulated guild,
// and what they see there.
//
// It promises to use the program as its wiring does, and to know nothing of its inside that
// is not exported.
package discordtest
