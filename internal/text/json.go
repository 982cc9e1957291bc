package text

import (
	"bytes"
	"encoding/json"
	"io"
)

// JSON is json.Marshal without the escaping of <, > and &, which
// would make code in a file longer and unreadable.
func JSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	if err := WriteJSON(&buf, v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// WriteJSON writes v in one line, as JSON does.
func WriteJSON(w io.Writer, v any) error { return writeJSON(w, v, "", "") }

// WriteIndentedJSON writes v for people. Each line after the first begins with prefix.
func WriteIndentedJSON(w io.Writer, v any, prefix string) error { return writeJSON(w, v, prefix, "  ") }

func writeJSON(w io.Writer, v any, prefix, indent string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, indent)
	return enc.Encode(v)
}

// SortedJSON returns a single JSON value with sorted keys and no spaces, and
// numbers as they were written. ok is false for anything else.
func SortedJSON(data []byte) (sorted []byte, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || dec.More() {
		return nil, false
	}
	sorted, err := JSON(v)
	return sorted, err == nil
}
