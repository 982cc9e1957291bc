package split

import (
	"regexp"
	"sort"
)

// oneThing is what means something only as a whole: inline code, mentions, emoji, times,
// commands, links.
var oneThing = regexp.MustCompile("``[^\\n]+?``|`[^`\\n]+`" +
	`|<(?:@[!&]?|#|a?:\w{1,64}:)\d{1,25}>|<t:-?\d{1,20}(?::[a-zA-Z])?>|</[^>\n]{1,100}:\d{1,25}>|<id:\w{1,32}>` +
	`|\[[^\]\n]*\]\([^)\s]*\)|<https?://[^\s>]+>|https?://\S+`)

// spans finds them outside of code blocks, in order.
func spans(text string, code []fence) []span {
	var out []span
	from := 0
	for i := 0; i <= len(code); i++ {
		to := len(text)
		if i < len(code) {
			to = code[i].from
		}
		for _, at := range oneThing.FindAllStringIndex(text[from:to], -1) {
			out = append(out, span{from + at[0], from + at[1]})
		}
		if i < len(code) {
			from = code[i].to
		}
	}
	return out
}

// span finds the one that a cut at the offset would break.
func (c *cutter) span(at int) (span, bool) {
	i := sort.Search(len(c.spans), func(i int) bool { return c.spans[i].to > at })
	if i < len(c.spans) && c.spans[i].from < at {
		return c.spans[i], true
	}
	return span{}, false
}
