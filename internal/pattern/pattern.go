// Package pattern compiles regular expressions when they are first used.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a regular expression that is compiled at its first use. The program has more than a
// hundred of them, and most commands use only a few. Compiling them during package initialisation
// would cost milliseconds at every start, and memory permanently. An invalid expression panics at
// its first use, like regexp.MustCompile, so a test has to use it.
func Lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
