// Package chaos kills the real program, before and after every one of its writes and
// at random moments, starts it again, and holds what is left against a run that
// nothing disturbed. It has tests only.
package chaos
