package split

import (
	"sort"
	"strings"
	"unicode"

	"chorus/internal/pattern"
)

// longestSpan is how far to look: anything longer than a message is broken anyway.
const longestSpan = 4 * DefaultHard

// pointy matches what may be in angle brackets: mentions, emoji, times, commands.
var pointy = pattern.Lazy(`^<(?:(?:@[!&]?|#|a?:\w{1,64}:)\d{1,25}|t:-?\d{1,20}(?::[a-zA-Z])?|/[^>\n]{1,100}:\d{1,25}|id:\w{1,32})>$`)

// spans finds, outside of code blocks and in order, what must not be
// broken: inline code, what is in angle brackets, links.
func spans(text string, code []fence) []span {
	var out []span
	from := 0
	for i := 0; i <= len(code); i++ {
		to := len(text)
		if i < len(code) {
			to = code[i].from
		}
		for at := from; at < to; {
			next := strings.IndexAny(text[at:to], "`<[h")
			if next < 0 {
				break
			}
			at += next
			n, whole := oneThing(text[at:min(to, at+longestSpan)])
			if whole {
				out = append(out, span{at, at + n})
			}
			at += n
		}
		if i < len(code) {
			from = code[i].to
		}
	}
	return out
}

// oneThing returns the length of the unbreakable thing that s begins
// with. If whole is false, n is how far to skip.
func oneThing(s string) (n int, whole bool) {
	line, _, _ := strings.Cut(s, "\n")
	switch s[0] {
	case '`':
		mark := ticks(s)
		if end := strings.Index(line[mark:], line[:mark]); end > 0 && mark <= 2 {
			return mark + end + mark, true
		}
		return mark, mark > 2 // a ruler; half of it would be a mark
	case '<':
		end := strings.IndexByte(line, '>') + 1
		if end > 0 && (end <= 160 && pointy().MatchString(line[:end]) || link(line[1:end]) == end-2) {
			return end, true
		}
	case '[':
		words := strings.IndexByte(line, ']') + 1
		if words > 0 && strings.HasPrefix(line[words:], "(") {
			if end := strings.IndexAny(line[words:], ") \t"); end > 0 && line[words+end] == ')' {
				return words + end + 1, true
			}
		}
	default:
		if n := link(line); n > 0 {
			return n, true
		}
	}
	return 1, false
}

// link returns the length of the bare link that s begins with, or 0.
func link(s string) int {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	if !ok || rest == "" {
		return 0
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || r == '>' })
	if end < 0 {
		end = len(rest)
	}
	return len(s) - len(rest) + end
}

// span finds the one that a cut at the offset would break.
func (c *cutter) span(at int) (span, bool) {
	i := sort.Search(len(c.spans), func(i int) bool { return c.spans[i].to > at })
	if i < len(c.spans) && c.spans[i].from < at {
		return c.spans[i], true
	}
	return span{}, false
}
