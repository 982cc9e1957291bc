package platform

import (
	"strconv"

	"chorus/internal/room"
)

// Numbers orders ids that are decimal numbers of up to 64 bits and grow with time. Platforms
// with such ids embed it.
type Numbers struct{}

// Older implements Platform.
func (Numbers) Older(a, b string) bool { return room.Older(a, b) }

// Before implements Platform.
func (Numbers) Before(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n == 0 {
		return "0"
	}
	return strconv.FormatUint(n-1, 10)
}

// After implements Platform.
func (Numbers) After(id string) string {
	n, _ := strconv.ParseUint(id, 10, 64) // something that is not a number is older than everything
	return strconv.FormatUint(n+1, 10)
}
