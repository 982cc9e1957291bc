package apierror

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// Error is an error answer, with Discord's message and code.
type Error struct {
	Status  int            `json:"-"`
	Message string         `json:"message"`
	Code    int            `json:"code"`
	Errors  map[string]any `json:"errors,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

var _ error = (*Error)(nil)

// Refuse returns an error with one of Discord's codes.
func Refuse(status, code int, message string) error {
	return &Error{Status: status, Code: code, Message: message}
}

// NotFound says that something does not exist.
func NotFound(code int, what string) error {
	return Refuse(http.StatusNotFound, code, "Unknown "+what)
}

// NoAccess says that the caller cannot see a place.
func NoAccess() error { return Refuse(http.StatusForbidden, 50001, "Missing Access") }

// NoPermission says that the caller lacks a permission.
func NoPermission() error { return Refuse(http.StatusForbidden, 50013, "Missing Permissions") }

// BadRequest says that a request is malformed.
func BadRequest(code int, message string) error {
	return Refuse(http.StatusBadRequest, code, message)
}

// Form collects mistakes in a body, each at its place, nested as Discord does.
type Form struct{ tree map[string]any }

// Add records a mistake at a path such as "embeds.0.title".
func (f *Form) Add(path, code, format string, args ...any) {
	if f.tree == nil {
		f.tree = map[string]any{}
	}
	at := f.tree
	for part := range strings.SplitSeq(path, ".") {
		next, ok := at[part].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[part] = next
		}
		at = next
	}
	list, _ := at["_errors"].([]any)
	at["_errors"] = append(list, object{"code": code, "message": fmt.Sprintf(format, args...)})
}

// Longest rejects a text that is too long.
func (f *Form) Longest(path, text string, most int) {
	if n := len([]rune(text)); n > most {
		f.Add(path, "BASE_TYPE_MAX_LENGTH", "Must be %d or fewer in length.", most)
	}
}

// Between rejects a number out of range.
func (f *Form) Between(path string, n, least, most int) {
	if n < least || n > most {
		f.Add(path, "BASE_TYPE_BAD_LENGTH", "Must be between %d and %d in length.", least, most)
	}
}

// Required rejects a missing field.
func (f *Form) Required(path string) {
	f.Add(path, "BASE_TYPE_REQUIRED", "This field is required")
}

// Err returns nil if there are no mistakes.
func (f *Form) Err() error {
	if len(f.tree) == 0 {
		return nil
	}
	return &Error{Status: http.StatusBadRequest, Code: 50035, Message: "Invalid Form Body", Errors: maps.Clone(f.tree)}
}

// Wrong is a form with one mistake.
func Wrong(path, code, format string, args ...any) error {
	f := Form{}
	f.Add(path, code, format, args...)
	return f.Err()
}

// Item is the path of one item of a list.
func Item(path string, i int) string { return path + "." + strconv.Itoa(i) }

// Decode parses a JSON body with Discord's errors: 50109 for invalid JSON, 50035 at the place of a wrong type.
func Decode(raw []byte, into any) error {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	err := json.Unmarshal(raw, into)
	if err == nil {
		return nil
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return Wrong(kind.Field, "BASE_TYPE_BAD_TYPE", "Value of type %q is not allowed here.", kind.Value)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return Refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
	}
	return Wrong("_", "BASE_TYPE_BAD_TYPE", "%s", err.Error())
}

// InData moves the mistakes in a message below the "data" field that contained it.
func InData(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Errors != nil {
		return &Error{Status: e.Status, Code: e.Code, Message: e.Message, Errors: map[string]any{"data": e.Errors}}
	}
	return err
}
