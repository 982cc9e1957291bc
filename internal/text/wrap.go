package text

import "strings"

// WrapWords breaks a text into lines of at most width columns, as counted by measure. It
// breaks only at blanks: a longer word, such as an address, stays whole so that it can
// be copied. Without a width the result is one line.
func WrapWords(s string, width int, measure func(string) int) []string {
	if width <= 0 {
		return []string{s}
	}
	var out []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case measure(line)+1+measure(word) <= width:
			line += " " + word
		default:
			out, line = append(out, line), word
		}
	}
	return append(out, line)
}
