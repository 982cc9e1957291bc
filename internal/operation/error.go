package operation

import (
	"errors"
	"fmt"
)

// Kind is what is wrong with a request.
type Kind string

// The kinds, with the HTTP status that says the same.
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

// Kinds are all there are.
func Kinds() []Kind {
	return []Kind{Invalid, Unsigned, Forbidden, NotFound, Conflict, TooLarge, Busy, Unavailable, NoSpace, Failed}
}

// Error is why an operation failed, in a sentence that says what to do.
type Error struct {
	Kind    Kind
	Message string
	Field   string // the field of the input it is about
	About   any    // for a conflict: what stands in the way
	Err     error
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a kind. A cause is given with %w.
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

// KindOf is the kind of any error; Failed for one that is not an *Error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Failed
}
