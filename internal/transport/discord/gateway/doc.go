// Package gateway is the connection to Discord: shards on the websocket, REST calls within
// Discord's rate limits, and what the gateway has reported of guilds.
//
// It promises that a stop leaves no goroutine behind, that a connection which says nothing is
// noticed, and that no call waits longer than its context. It decides nothing about what is said.
package gateway
