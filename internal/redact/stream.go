package redact

import "strings"

// maxHeld is how much of a line is held back. A longer line is divided between words.
const maxHeld = 16 << 10

// keptBack is how much of a line without any space is held back when it is divided.
const keptBack = 1 << 10

// Stream redacts text that comes in pieces, with the same result as Text: it releases a line when it has
// ended, and a private key when its last line has come. It must be used by one goroutine at a time.
type Stream struct {
	r    *Redactor
	held string
	data bool
}

// Stream begins a text.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Write takes a piece and returns what is now safe to show, often nothing.
func (s *Stream) Write(piece string) string {
	s.held += piece
	return s.give(safe(s.held))
}

// Flush returns the rest. The stream may be used for another text afterwards.
func (s *Stream) Flush() string {
	out := s.give(len(s.held))
	s.data = false
	return out
}

func (s *Stream) give(n int) string {
	if n == 0 {
		return ""
	}
	var out string
	out, s.data = s.r.piece(s.held[:n], s.data)
	s.held = s.held[n:]
	return out
}

// safe returns how much of a text can be redacted without knowing what follows.
func safe(text string) int {
	n := strings.LastIndexByte(text, '\n') + 1
	if len(text)-n > maxHeld {
		n = len(text) - keptBack
		if space := strings.LastIndexAny(text[:n], " \t"); space > 0 {
			n = space
		}
	}
	n = beforeWrapped(text, n)
	if open := openBlock(text[:n]); open >= 0 && len(text)-open < maxBlock {
		n = open
	}
	return n
}

// mostWrapped is how many lines of base64 are held back: a secret may continue on the next line.
const mostWrapped = 8

// beforeWrapped moves n, the beginning of a line, before lines of base64 that may continue.
func beforeWrapped(text string, n int) int {
	for range mostWrapped {
		if n == 0 || text[n-1] != '\n' {
			return n
		}
		from := strings.LastIndexByte(text[:n-1], '\n') + 1
		line := text[from : n-1]
		if len(line) < wrappedLine || len(text)-from > maxHeld || strings.IndexFunc(line, func(r rune) bool { return r > 127 || !inRun[byte(r)] }) >= 0 {
			return n
		}
		n = from
	}
	return n
}

// openBlock returns where an unfinished private key begins, or -1.
func openBlock(text string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], blockHead)
		if i < 0 {
			return -1
		}
		i += from
		head, ok := keyBlock(text[i:])
		if !ok {
			from = i + len(blockHead)
			continue
		}
		end := strings.Index(text[i+head:], blockTail)
		if end < 0 {
			return i
		}
		from = i + head + end
	}
}
