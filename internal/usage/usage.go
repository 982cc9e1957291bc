// Package usage marks mistakes in how a command was called. For these, the program
// exits with 2 and operations respond that their input is invalid.
package usage

// Error is such a mistake.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Wrap marks err as such a mistake.
func Wrap(err error) error { return &Error{err} }
