package rest

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"
)

// cursorMark identifies our cursors and the version of their format.
const cursorMark = "c1"

// Cursor makes the position in a list opaque.
func Cursor(text string) string {
	if text == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(cursorMark + text))
}

// ReadCursor reads what Cursor wrote.
func ReadCursor(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	text, ok := strings.CutPrefix(string(data), cursorMark)
	if err != nil || !ok || text == "" || !utf8.ValidString(text) {
		return "", badFields(http.StatusBadRequest, FieldError{In: "query", Field: "cursor",
			Message: "it is not a valid cursor; use next of the previous page, unchanged"})
	}
	return text, nil
}
