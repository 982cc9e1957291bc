// Package guild is the guild of the simulator with its contents: people, bots, roles, channels, messages, interactions,
// and Discord's rules for them. It promises to be as strict as Discord, and knows nothing of sockets and requests. It
// does not lock: its user holds a lock around every use.
package guild

// object is a part of a message that is passed on unchanged: an embed, a component.
type object = map[string]any
