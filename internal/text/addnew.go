package text

import "slices"

// AddNew appends the strings that are neither empty nor already in the slice.
func AddNew(to []string, more ...string) []string {
	for _, s := range more {
		if s != "" && !slices.Contains(to, s) {
			to = append(to, s)
		}
	}
	return to
}
