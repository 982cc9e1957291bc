// Package apptest helps tests of the parts of the program that open a whole home.
package apptest

// Env is an environment that has these variables, given as name and value in turn, and no others.
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
