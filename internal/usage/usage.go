// Package usage marks a mistake in how a command was called. The program exits with 2 for
// it, and an operation answers that its input is invalid.
package usage

// Error is such a mistake.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Wrap marks err as such a mistake.
func Wrap(err error) error { return &Error{err} }
