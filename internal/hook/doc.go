// Package hook decides what hooks do: which events and times trigger them, when they rest, what their context
// steps and their model are asked, and when no model is asked at all. It is pure: nothing here reads a clock, a file
// or a database. Package runner carries out what is decided here.
//
// It promises:
//   - a definition that was accepted can be run: whatever is wrong with a trigger, a step or an action is said when
//     it is made, so that one bad hook cannot hold up the others;
//   - a template is read once from left to right, and what is put into it is never read as a template;
//   - a hook never runs on account of its own run, however many others stand between them.
package hook
