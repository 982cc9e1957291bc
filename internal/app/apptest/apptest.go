// Package apptest helps tests of the parts of the program that open a whole home.
package apptest

// Env returns an environment with only these variables, given as alternating names and values.
func Env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}
