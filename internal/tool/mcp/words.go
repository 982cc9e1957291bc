package mcp

import (
	"strings"
	"sync"

	"chorus/internal/digest"
	"chorus/internal/text"
)

// printable returns untrusted text on one line; see text.Printable.
func printable(s string, most int) string { return text.Printable(s, most) }

// multiline returns untrusted text of several lines without control
// characters, and at most most characters long.
func multiline(s string, most int) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = printable(line, most)
	}
	return text.Clip(strings.TrimSpace(strings.Join(lines, "\n")), most)
}

func short(parts ...string) string {
	return digest.Of(strings.Join(parts, "\x00"))[:8]
}

// ring keeps the end of what is written to it. It is safe for concurrent use.
type ring struct {
	mu   sync.Mutex
	most int
	data []byte
}

// Write implements io.Writer; it never fails.
func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = append(r.data, p[max(0, len(p)-r.most):]...)
	if over := len(r.data) - r.most; over > 0 {
		r.data = append(r.data[:0], r.data[over:]...)
	}
	return len(p), nil
}

// last returns the end of the contents on one line.
func (r *ring) last(most int) string {
	r.mu.Lock()
	text := string(r.data)
	r.mu.Unlock()
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return printable(text, most+8)
}
