package operation

import (
	"errors"
	"fmt"
)

// Kind is the kind of an error.
type Kind string

// The kinds, with their HTTP statuses.
const (
	Invalid     Kind = "invalid"     // 400
	Unsigned    Kind = "unsigned"    // 401
	Forbidden   Kind = "forbidden"   // 403
	NotFound    Kind = "not_found"   // 404
	Conflict    Kind = "conflict"    // 409
	TooLarge    Kind = "too_large"   // 413
	Busy        Kind = "busy"        // 429
	Unavailable Kind = "unavailable" // 503
	NoSpace     Kind = "no_space"    // 507
	Failed      Kind = "failed"      // 500
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Invalid, Unsigned, Forbidden, NotFound, Conflict, TooLarge, Busy, Unavailable, NoSpace, Failed}
}

// Error says why an operation failed and what to do, in one sentence.
type Error struct {
	Kind    Kind
	Message string
	Field   string // the field of the input that is wrong
	About   any    // for a conflict: what causes it
	Err     error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a kind. Use %w for a cause.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Err: errors.Unwrap(err)}
}

// InvalidField says what is wrong with a field of the input.
func InvalidField(field, format string, args ...any) *Error {
	err := Errorf(Invalid, format, args...)
	err.Field = field
	return err
}

// KindOf returns the kind of any error; Failed if it is not an *Error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Failed
}
