package modelrouter

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Pattern is a rule for model names. It always matches the whole name: literally, with * for any number of
// characters and ? for one, or, if it contains a backslash or ".*", as a regular expression.
type Pattern struct {
	text string
	re   *regexp.Regexp // nil: a glob
}

// maxPattern is far longer than any model's name; an expression must be readable by people.
const maxPattern = 512

// Compile parses a pattern.
func Compile(text string) (Pattern, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return Pattern{}, errors.New("a pattern in provides is empty; remove it, or write * for every model")
	case len(text) > maxPattern:
		return Pattern{}, fmt.Errorf("the pattern %.40q… is longer than %d characters", text, maxPattern)
	case !strings.Contains(text, `\`) && !strings.Contains(text, ".*"):
		return Pattern{text: text}, nil
	}
	re, err := regexp.Compile(`\A(?:` + text + `)\z`)
	if err == nil {
		_, err = regexp.Compile(text) // "a)(b" is only valid between our parentheses
	}
	if err != nil {
		return Pattern{}, fmt.Errorf(`the pattern %q has a backslash or ".*" and so is a regular expression, but %w`, text, err)
	}
	return Pattern{text: text, re: re}, nil
}

// String returns the pattern as written.
func (p Pattern) String() string { return p.text }

// Match reports whether it matches a whole name.
func (p Pattern) Match(name string) bool {
	if p.re != nil {
		return p.re.MatchString(name)
	}
	return glob([]rune(p.text), []rune(name))
}

// glob backtracks only to the last star, so it takes at most len(pattern)*len(name) steps.
func glob(pattern, name []rune) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
