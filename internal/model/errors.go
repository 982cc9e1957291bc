package model

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrorKind says what went wrong, as far as the caller must act on it.
type ErrorKind string

// The kinds of failure. Only RateLimited, Overloaded and Network are
// worth another attempt of the same request.
const (
	Auth        ErrorKind = "auth"             // no key, a wrong one, or one without the necessary rights
	RateLimited ErrorKind = "rate_limit"       // too fast; RetryAfter may say how long to wait
	Overloaded  ErrorKind = "overloaded"       // the provider cannot answer just now
	TooLong     ErrorKind = "context_too_long" // the request does not fit the model's window
	Refused     ErrorKind = "refused"          // the provider will not answer this
	Network     ErrorKind = "network"          // no connection, cut off, garbled, or silent for too long
	BadRequest  ErrorKind = "bad_request"      // our request is wrong; the same one will fail again
)

// Error is the error of every failed model call.
type Error struct {
	Kind       ErrorKind
	Provider   string
	Model      string
	Message    string        // what the provider said, cut to a readable length; never a key
	Status     int           // HTTP status, 0 if there was none
	RetryAfter time.Duration // 0: unknown
	Setting    string        // where the key is set; "": PROVIDER_API_KEY
	Err        error         // cause, may be nil
}

// Error describes the error in one line and says what to do about it.
func (e *Error) Error() string {
	what := map[ErrorKind]string{
		Auth:        "the key was not accepted",
		RateLimited: "too many requests",
		Overloaded:  "the provider is overloaded",
		TooLong:     "the conversation is too long for the model",
		Refused:     "the provider refused to answer",
		Network:     "the connection to the provider failed",
		BadRequest:  "the provider rejected the request",
	}[e.Kind]
	if e.Kind == BadRequest && e.Status == 0 {
		what = "the request was rejected" // perhaps before it was sent
	}
	what = cmp.Or(what, string(e.Kind))
	s := fmt.Sprintf("%s/%s: %s", e.Provider, e.Model, what)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Kind == Auth && e.Status != 0 {
		s += "; check " + cmp.Or(e.Setting, strings.ToUpper(e.Provider)+"_API_KEY")
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	return e.Kind == RateLimited || e.Kind == Overloaded || e.Kind == Network
}

// KindOf returns the kind of a model's failure, or "" for any other error.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
