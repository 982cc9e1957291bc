package markdown

import (
	"io"
	"strings"
	"unicode/utf8"

	"chorus/internal/pattern"
)

// NewCleaner returns a writer for a terminal that cleans text as Clean does. With styles, SGR sequences (colours and
// similar) pass too, for texts that use them and clean foreign text themselves. It must be used by one goroutine at a
// time.
func NewCleaner(w io.Writer, styles bool) io.Writer { return &cleaner{w: w, styles: styles} }

type cleaner struct {
	w      io.Writer
	styles bool
	rest   []byte // the start of a character
}

// colouring is one SGR sequence.
var colouring = pattern.Lazy("\x1b\\[[0-9;]*m")

func (c *cleaner) Write(p []byte) (int, error) {
	text := append(c.rest, p...)
	whole := len(text) - cutRune(text)
	c.rest = append([]byte(nil), text[whole:]...)
	_, err := io.WriteString(c.w, c.clean(string(text[:whole])))
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *cleaner) clean(text string) string {
	if !c.styles {
		return Clean(text)
	}
	var out strings.Builder
	at := 0
	for _, found := range colouring().FindAllStringIndex(text, -1) {
		out.WriteString(Clean(text[at:found[0]]))
		out.WriteString(text[found[0]:found[1]])
		at = found[1]
	}
	out.WriteString(Clean(text[at:]))
	return out.String()
}

// cutRune is how many bytes at the end start an incomplete character.
func cutRune(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
