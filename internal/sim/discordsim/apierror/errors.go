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

// Error is an answer that says no, in Discord's words and with its code.
type Error struct {
	Status  int            `json:"-"`
	Message string         `json:"message"`
	Code    int            `json:"code"`
	Errors  map[string]any `json:"errors,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

var _ error = (*Error)(nil)

// Refuse is an answer with one of Discord's codes.
func Refuse(status, code int, message string) error {
	return &Error{Status: status, Code: code, Message: message}
}

// NotFound says that there is no such thing.
func NotFound(code int, what string) error {
	return Refuse(http.StatusNotFound, code, "Unknown "+what)
}

// NoAccess says that the asker does not see a place.
func NoAccess() error { return Refuse(http.StatusForbidden, 50001, "Missing Access") }

// NoPermission says that the asker lacks a right.
func NoPermission() error { return Refuse(http.StatusForbidden, 50013, "Missing Permissions") }

// BadRequest says that a request makes no sense.
func BadRequest(code int, message string) error {
	return Refuse(http.StatusBadRequest, code, message)
}

// Form collects what is wrong with a body, each at its place, as Discord nests it.
type Form struct{ tree map[string]any }

// Add says what is wrong at a path such as "embeds.0.title".
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

// Longest complains of a text with more than so many characters.
func (f *Form) Longest(path, text string, most int) {
	if n := len([]rune(text)); n > most {
		f.Add(path, "BASE_TYPE_MAX_LENGTH", "Must be %d or fewer in length.", most)
	}
}

// Between complains of a number outside of its bounds.
func (f *Form) Between(path string, n, least, most int) {
	if n < least || n > most {
		f.Add(path, "BASE_TYPE_BAD_LENGTH", "Must be between %d and %d in length.", least, most)
	}
}

// Required complains of a field that is not there.
func (f *Form) Required(path string) {
	f.Add(path, "BASE_TYPE_REQUIRED", "This field is required")
}

// Err is nil where nothing was found.
func (f *Form) Err() error {
	if len(f.tree) == 0 {
		return nil
	}
	return &Error{Status: http.StatusBadRequest, Code: 50035, Message: "Invalid Form Body", Errors: maps.Clone(f.tree)}
}

// Wrong is a form with one complaint.
func Wrong(path, code, format string, args ...any) error {
	f := Form{}
	f.Add(path, code, format, args...)
	return f.Err()
}

// Item is the path of one item of a list.
func Item(path string, i int) string { return path + "." + strconv.Itoa(i) }

// Decode reads a JSON body, and says no as Discord does: 50109 for what is no JSON, 50035 at the
// place that has the wrong type.
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

// InData moves what is wrong with a message under the "data" that it came in.
func InData(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Errors != nil {
		return &Error{Status: e.Status, Code: e.Code, Message: e.Message, Errors: map[string]any{"data": e.Errors}}
	}
	return err
}
