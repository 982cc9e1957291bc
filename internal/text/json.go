package text

import (
	"bytes"
	"encoding/json"
)

// JSON is json.Marshal without the escaping of <, > and &, which
// would make code in a file longer and unreadable.
func JSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
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
