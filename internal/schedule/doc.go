// Package schedule defines schedules and computes when something is due:
// once, at an interval, or by the calendar of a time zone.
//
// It is pure: it has no clock and stores nothing. Its users start what a
// schedule starts, and make sure that this happens once.
package schedule
