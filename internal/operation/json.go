package operation

import "encoding/json"

// JSON is a field whose value has its own format, which the handler parses. The zero value means left out; null is a value.
type JSON struct{ Raw json.RawMessage }

// MarshalJSON implements json.Marshaler.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j.Raw) == 0 {
		return []byte("null"), nil
	}
	return j.Raw, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (j *JSON) UnmarshalJSON(data []byte) error {
	j.Raw = append(json.RawMessage(nil), data...)
	return nil
}

// IsZero reports whether the field was left out.
func (j JSON) IsZero() bool { return len(j.Raw) == 0 }
