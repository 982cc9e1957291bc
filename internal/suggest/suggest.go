// Package suggest finds the name that somebody probably meant when they
// mistyped it. It is for hints in errors, never for decisions.
package suggest

import (
	"fmt"
	"strings"
)

// Distance returns how many letters to insert, delete or replace to turn a into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Best returns the nearest of the names, ignoring case, or "" if none is near. Near
// means at most two letters off, or a third of a longer word.
func Best(word string, names []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, name := range names {
		if d := Distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// Hint returns the end of a sentence about an unknown word: `; did you mean "x"?`, or "".
func Hint(word string, names []string) string {
	if best := Best(word, names); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}
