package split

import (
	"sort"
	"strings"
)

// span is a stretch of the text, in bytes.
type span struct{ from, to int }

// fence is a code block: the marks and the code between them.
type fence struct {
	span
	body  int    // where the first line of code begins
	close int    // where the closing mark begins; the end of the text if there is none
	mark  string // the opening backticks
	word  string // the language
}

// open returns the text that reopens the block in the next message.
func (f fence) open() string { return f.mark + f.word + "\n" }

// shut returns the text that closes it at the end of this one.
func (f fence) shut() string { return "\n" + f.mark }

// longestMark limits what is repeated in each message.
const longestMark = 8

// fences finds the code blocks as the platform shows them: three or more backticks anywhere open
// one, and at least as many close it. An unclosed block extends to the end.
func fences(text string) []fence {
	var found []fence
	for at := 0; at < len(text); {
		from := strings.Index(text[at:], "```")
		if from < 0 {
			break
		}
		from += at
		mark := ticks(text[from:])
		if mark > longestMark {
			at = from + mark // a ruler, not a mark
			continue
		}
		f := fence{span: span{from, len(text)}, close: len(text), mark: text[from : from+mark]}
		f.word, f.body = language(text, from+mark)
		if i := strings.Index(text[f.body:], f.mark); i >= 0 {
			f.close = f.body + i
			f.to = f.close + ticks(text[f.close:])
		}
		found = append(found, f)
		at = f.to
	}
	return found
}

func ticks(s string) int { return len(s) - len(strings.TrimLeft(s, "`")) }

// language reads the word after the opening mark. If the line continues, it is already code.
func language(text string, at int) (word string, body int) {
	line, _, whole := strings.Cut(text[at:], "\n")
	for _, c := range line {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.#", c) {
			return "", at
		}
	}
	if !whole || len(line) > 32 {
		return "", at
	}
	return line, at + len(line) + 1
}

// inside finds the block that a cut at the offset would break.
func inside(all []fence, at int) (fence, bool) {
	i := sort.Search(len(all), func(i int) bool { return all[i].to > at })
	if i < len(all) && all[i].from < at {
		return all[i], true
	}
	return fence{}, false
}
