package text

import (
	"bytes"
	"encoding/json"
)

// JSON is json.Marshal without the escaping of <, > and &, which would make code in a
// file unreadable and longer.
func JSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// SortedJSON is one JSON value with sorted keys and no spaces, numbers as they were
// written; ok is false for anything else.
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
