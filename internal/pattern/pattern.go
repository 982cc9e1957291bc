// Package pattern compiles regular expressions when they are first used.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy is a regular expression that is compiled at its first use. The program has more than a hundred of them, and most commands
// use a handful: compiled while packages are initialised they would cost every start milliseconds, and memory for good.
// An expression that is wrong panics at its first use, as regexp.MustCompile does, so a test has to use it.
func Lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
