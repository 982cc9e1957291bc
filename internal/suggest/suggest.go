// Package suggest finds what somebody meant: the name that a slip of the fingers could
// have come from. It is for hints in errors, never for deciding.
package suggest

import (
	"fmt"
	"strings"
)

// Distance counts the letters to insert, delete or replace to make b of a.
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

// Best is the nearest of the names, whatever their case; "" when none is near: two
// letters off, or a third of a longer word.
func Best(word string, names []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, name := range names {
		if d := Distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// Hint is the end of a sentence about an unknown word: `; did you mean "x"?`, or nothing.
func Hint(word string, names []string) string {
	if best := Best(word, names); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}
