// Package schedule says when something is due: once, at an interval, or by the calendar of a time zone; and what a
// schedule is.
//
// It is pure: it knows no clock and keeps nothing. What a schedule starts, and that it starts it once, is the
// business of those who use it.
package schedule
