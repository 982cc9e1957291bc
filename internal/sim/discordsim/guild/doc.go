// Package guild is the guild of the simulator and everything in it: people, bots, roles, channels, messages, interactions,
// and Discord's rules for them. It promises to be as strict as Discord is, and knows nothing of sockets and requests. It takes no
// lock: whoever uses it holds one around every use.
package guild

// object is a part of a message that is passed on as it came: an embed, a component.
type object = map[string]any
