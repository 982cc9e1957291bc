// Package hook decides what hooks do: which events and times trigger them, when they rest, what
// their context steps and their model are asked, and when no model is asked. It is pure: it reads
// no clock, file or database. Package runner carries out the decisions.
//
// It guarantees:
//   - An accepted definition can be run: everything wrong with a trigger, a step or an action is reported when it is
//     created, so that one bad hook cannot hold up the others.
//   - A template is read once from left to right, and inserted values are never read as a template.
//   - A hook never runs because of its own run, however many others are in between.
package hook
