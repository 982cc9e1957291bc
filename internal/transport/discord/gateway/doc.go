// Package gateway is the connection to Discord: shards on the websocket, REST calls within
// Discord's rate limits, and what the gateway has reported about guilds.
//
// It promises that a stop leaves no goroutine behind, that it notices a silent connection,
// and that no call waits longer than its context. It makes no decisions about messages.
package gateway
