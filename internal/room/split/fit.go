package split

import (
	"fmt"
	"strings"
	"unicode"

	words "chorus/internal/text"
)

// File is an answer that is too long for messages.
type File struct {
	Name string
	Text string
}

// Answer is what is sent: messages, or one message with a file.
type Answer struct {
	Pieces []Piece
	File   *File
}

// Texts returns the messages' texts.
func (a Answer) Texts() []string {
	out := make([]string, len(a.Pieces))
	for i, p := range a.Pieces {
		out[i] = p.Text
	}
	return out
}

// previewLength is how much of an attached answer the message shows.
const previewLength = 500

// Fit is Split, or a file if that would give more than Most messages. Then the
// single message has the beginning of the answer and says that the rest is
// attached. An answer without words gives nothing.
func Fit(text string, o Options) Answer {
	o = o.or()
	pieces := newCutter(text, o).pieces(o.Most + 1)
	if len(pieces) <= o.Most {
		return Answer{Pieces: pieces}
	}
	note := fmt.Sprintf("*The whole %s is attached (%s characters).*", o.Whole, words.Thousands(Length(text)))
	room := min(previewLength, max(o.Target-Length(note)-2, leastTarget))
	first := newCutter(text, Options{Target: room, Hard: o.Hard, Most: 1}).pieces(1)[0]
	return Answer{
		Pieces: []Piece{{Text: strings.TrimRightFunc(first.Text, unicode.IsSpace) + "\n\n" + note}},
		File:   &File{Name: o.Whole + ".md", Text: text},
	}
}

// Clip cuts a text to limit characters and marks that something is missing. It breaks no combined character.
func Clip(text string, limit int) string {
	if Length(text) <= limit {
		return text
	}
	if limit <= 0 {
		return ""
	}
	at := whole(text, within(text, limit-1))
	return strings.TrimRightFunc(text[:at], unicode.IsSpace) + "…"
}
