package database

import (
	"encoding/json"
	"time"
)

// Micros is how an instant is kept.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time is the instant that was kept.
func Time(us int64) time.Time { return time.UnixMicro(us).UTC() }

// Instant is what was kept, where 0 is no time.
func Instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return Time(us)
}

// NullMicros keeps the zero time as NULL.
func NullMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return Micros(t)
}

// Flag is how yes and no are kept.
func Flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// AsJSON keeps a small value in a text column.
func AsJSON(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}
