package database

import (
	"encoding/json"
	"time"
)

// Micros returns the stored form of an instant.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time returns the instant for a stored value.
func Time(us int64) time.Time { return time.UnixMicro(us).UTC() }

// Instant is Time, but 0 gives the zero time.
func Instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return Time(us)
}

// NullMicros stores the zero time as NULL.
func NullMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return Micros(t)
}

// Flag returns the stored form of a boolean.
func Flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// AsJSON encodes a small value for a text column.
func AsJSON(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}
