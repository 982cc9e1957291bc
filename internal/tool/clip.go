package tool

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of one result. Beyond them a model stops reading carefully,
// and every later request pays for the text again.
const (
	MaxLines = 2000
	MaxBytes = 50 << 10
)

// noticeRoom is the part of MaxBytes that is reserved for the notice.
const noticeRoom = 512

// Keep stores the whole of an output that is too long to show and returns the name
// under which the model can read it: "@outputs/<call>.txt".
type Keep func(ctx context.Context, callID, text string) (ref string, err error)

// End is the end of a long text that is worth showing.
type End int

// The ends: a file is read from its head, a command's news is at its tail.
const (
	Head End = iota
	Tail
)

// Clip returns text cut to MaxLines and MaxBytes, always valid UTF-8. If something was
// cut, a notice says which lines are shown and, if keep is not nil, where the whole text
// is. The notice comes after a head and before a tail.
func Clip(ctx context.Context, text string, end End, keep Keep) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	lines := countLines(text)
	if lines <= MaxLines && len(text) <= MaxBytes {
		return text
	}
	shown, first, cut := head(text)
	if end == Tail {
		shown, first, cut = tail(text, lines)
	}
	last := first + countLines(shown) - 1
	notice := fmt.Sprintf("Showing lines %d-%d of %d.", first, last, lines)
	if cut {
		side := "beginning"
		if end == Tail {
			side = "end"
		}
		notice = fmt.Sprintf("Showing the %s (%d bytes) of line %d of %d, which has more.", side, len(shown), first, lines)
	}
	notice = "[" + notice + kept(ctx, keep, text) + "]"
	if end == Tail {
		return notice + "\n" + shown
	}
	return strings.TrimSuffix(shown, "\n") + "\n" + notice
}

func kept(ctx context.Context, keep Keep, text string) string {
	if keep == nil {
		return ""
	}
	ref, err := keep(ctx, CallFrom(ctx).ID, text)
	if err != nil {
		return " The full output could not be kept."
	}
	return " Full output: " + ref
}

// head returns the beginning of text that fits, in whole lines if at least one fits.
func head(text string) (shown string, first int, cut bool) {
	end, lines := 0, 0
	for lines < MaxLines && end < len(text) {
		next := strings.IndexByte(text[end:], '\n') + 1
		if next == 0 {
			next = len(text) - end
		}
		if end+next > MaxBytes-noticeRoom {
			break
		}
		end += next
		lines++
	}
	if end > 0 {
		return text[:end], 1, false
	}
	end = MaxBytes - noticeRoom
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end], 1, true
}

// tail returns the end of text that fits, in whole lines if at least one fits.
func tail(text string, total int) (shown string, first int, cut bool) {
	start, lines := len(text), 0
	for lines < MaxLines && start > 0 {
		prev := strings.LastIndexByte(text[:start-1], '\n') + 1
		if len(text)-prev > MaxBytes-noticeRoom {
			break
		}
		start = prev
		lines++
	}
	if lines > 0 {
		return text[start:], total - lines + 1, false
	}
	start = len(text) - (MaxBytes - noticeRoom)
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:], total, true
}

// countLines also counts a last line without a newline. An empty text has one empty line.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
