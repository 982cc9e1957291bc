package wire

import "strings"

const thinkOpen, thinkClose = "<think>", "</think>"

// ThinkTags separates what a model says from what it thinks, for servers that send both as text: local models
// begin their answer with <think>…</think>. The zero value is ready to use, for one answer.
type ThinkTags struct {
	held  string // may be the beginning of a tag
	state thinkState
}

type thinkState int

const (
	atStart thinkState = iota // nothing but white space so far
	inThoughts
	behindThoughts // white space before the answer is dropped
	inAnswer
)

// Split takes the next piece of an answer.
func (t *ThinkTags) Split(piece string) (thinking, said string) {
	var thoughts, words strings.Builder
	rest := t.held + piece
	t.held = ""
	for rest != "" {
		switch t.state {
		case atStart:
			bare := strings.TrimLeft(rest, " \t\r\n")
			switch {
			case strings.HasPrefix(bare, thinkOpen):
				t.state, rest = inThoughts, bare[len(thinkOpen):]
			case strings.HasPrefix(thinkOpen, bare): // even if it is empty
				t.held = rest
				return thoughts.String(), words.String()
			default:
				t.state = inAnswer
			}
		case inThoughts:
			before, after, ended := strings.Cut(rest, thinkClose)
			if ended {
				thoughts.WriteString(before)
				t.state, rest = behindThoughts, after
				continue
			}
			keep := partOf(rest, thinkClose)
			thoughts.WriteString(rest[:len(rest)-keep])
			t.held = rest[len(rest)-keep:]
			return thoughts.String(), words.String()
		case behindThoughts:
			if rest = strings.TrimLeft(rest, " \t\r\n"); rest != "" {
				t.state = inAnswer
			}
		case inAnswer:
			words.WriteString(rest)
			rest = ""
		}
	}
	return thoughts.String(), words.String()
}

// Rest returns what was held back, once the answer is over.
func (t *ThinkTags) Rest() (thinking, said string) {
	held := t.held
	t.held = ""
	if t.state == inThoughts {
		return held, ""
	}
	return "", held
}

// partOf returns how many bytes at the end of s may be the beginning of a tag.
func partOf(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
