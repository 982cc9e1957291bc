// Package discordtest tests the whole program on Discord: what people do in a simulated guild,
// and what they see there.
//
// It promises to use the program through its wiring and to know only its exported
// parts.
package discordtest
