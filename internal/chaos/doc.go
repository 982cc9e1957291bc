// Package chaos kills the real program, before and after every one of its writes and
// at random moments, starts it again, and holds what is left against a run that
// nothing disturbed. It also plays what happens to machines (full disks, deleted and damaged
// files, clocks that jump) against the real server. It has tests only.
package chaos
