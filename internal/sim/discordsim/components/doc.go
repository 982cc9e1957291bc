// Package components knows the trees of buttons, menus, texts and inputs under messages and in modals: Discord's rules for them, and
// how to find something in them.
package components

type object = map[string]any
