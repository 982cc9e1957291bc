// Package components implements Discord's rules for the trees of buttons, menus, texts and inputs in messages and
// modals, and finds things in them.
package components

type object = map[string]any
