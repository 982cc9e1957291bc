package discordsim

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// apiError is an answer that says no, in Discord's words and with its code.
type apiError struct {
	status  int
	Message string         `json:"message"`
	Code    int            `json:"code"`
	Errors  map[string]any `json:"errors,omitempty"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

var _ error = (*apiError)(nil)

func refuse(status, code int, message string) error {
	return &apiError{status: status, Code: code, Message: message}
}

func notFound(code int, what string) error {
	return refuse(http.StatusNotFound, code, "Unknown "+what)
}

func noAccess() error     { return refuse(http.StatusForbidden, 50001, "Missing Access") }
func noPermission() error { return refuse(http.StatusForbidden, 50013, "Missing Permissions") }
func badRequest(code int, message string) error {
	return refuse(http.StatusBadRequest, code, message)
}

// form collects what is wrong with a body, each at its place, as Discord nests it.
type form struct{ tree map[string]any }

// add says what is wrong at a path such as "embeds.0.title".
func (f *form) add(path, code, format string, args ...any) {
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

func (f *form) longest(path, text string, most int) {
	if n := len([]rune(text)); n > most {
		f.add(path, "BASE_TYPE_MAX_LENGTH", "Must be %d or fewer in length.", most)
	}
}

func (f *form) between(path string, n, least, most int) {
	if n < least || n > most {
		f.add(path, "BASE_TYPE_BAD_LENGTH", "Must be between %d and %d in length.", least, most)
	}
}

func (f *form) required(path string) {
	f.add(path, "BASE_TYPE_REQUIRED", "This field is required")
}

// err is nil where nothing was found.
func (f *form) err() error {
	if len(f.tree) == 0 {
		return nil
	}
	return &apiError{status: http.StatusBadRequest, Code: 50035, Message: "Invalid Form Body", Errors: maps.Clone(f.tree)}
}

// wrong is a form with one complaint.
func wrong(path, code, format string, args ...any) error {
	f := form{}
	f.add(path, code, format, args...)
	return f.err()
}

func index(path string, i int) string { return path + "." + strconv.Itoa(i) }
