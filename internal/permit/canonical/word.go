package canonical

import "strings"

// Word returns a word in canonical form: a shell reads it as exactly that word.
func Word(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+:,./_-", r))
	}) < 0
	if plain {
		return s
	}
	return quote(s)
}
