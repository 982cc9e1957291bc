// Package markdown renders what models write: for a terminal line by line while it is still
// being written, and for web pages block by block.
//
// Terminal: a line that was returned never changes. Whatever may still change (an open
// paragraph, a table, an unfinished line) is the tail, which can be asked for at any time. With
// colour off the text is passed on as it was written.
//
// Web: see Blocks. Raw HTML is shown as text, and links lead to safe schemes only.
//
// Both: no input makes it panic or slow, and none of the input's control characters but the
// newline reach the output, so a model cannot move the cursor, set a title or hide text.
package markdown

import (
	"strings"

	"chorus/internal/theme"
)

// Renderer turns a stream of markdown into finished lines. It is not safe for
// concurrent use.
type Renderer struct {
	width int
	look  theme.Theme

	rest  string   // the unfinished source line
	held  []string // complete source lines whose drawing waits for the next one
	table bool     // held is a table

	fence     string // the fence that closes the open code block, "" for none
	fencePad  string // what stands before the fence's lines on the screen
	fenceCut  int    // columns of indentation that belong to the fence itself
	quoted    int    // quote depth in which the fence was opened
	highlight highlighter
	inList    bool
	sawBlank  bool // the last line was blank; further blanks are dropped
	atTheTop  bool // nothing was drawn yet: leading blanks are dropped
}

// minWidth keeps wrapping sensible on absurdly narrow terminals.
const minWidth = 8

// New makes a renderer for lines of at most width columns. Without colours the
// text stays as it is, except for control characters; width then means nothing.
func New(width int, look theme.Theme) *Renderer {
	r := &Renderer{look: look, atTheTop: true}
	r.SetWidth(width)
	return r
}

// SetWidth changes the width of the lines that are still to come.
func (r *Renderer) SetWidth(width int) { r.width = max(width, minWidth) }

// SetTheme changes the colours of the lines that are still to come.
func (r *Renderer) SetTheme(look theme.Theme) { r.look = look }

// Write takes the next piece and returns the lines that are now final, without
// newlines at their ends.
func (r *Renderer) Write(piece string) []string {
	r.rest += piece
	var out []string
	for {
		line, rest, ok := strings.Cut(r.rest, "\n")
		if !ok {
			return out
		}
		r.rest = rest
		out = append(out, r.line(line)...)
	}
}

// Tail draws what is not final yet, as it would look if nothing more came.
func (r *Renderer) Tail() []string {
	if r.rest == "" && len(r.held) == 0 {
		return nil
	}
	trial := *r
	trial.held = append([]string(nil), r.held...)
	return trial.Close()
}

// Close ends the text: the tail becomes final. The renderer then begins anew.
func (r *Renderer) Close() []string {
	var out []string
	if r.rest != "" {
		rest := r.rest
		r.rest = ""
		out = r.line(rest)
	}
	out = append(out, r.release()...)
	*r = Renderer{width: r.width, look: r.look, atTheTop: true}
	return out
}

// Drop forgets the tail without drawing it.
func (r *Renderer) Drop() { *r = Renderer{width: r.width, look: r.look, atTheTop: true} }

// Render draws a whole text.
func Render(text string, width int, look theme.Theme) []string {
	r := New(width, look)
	out := r.Write(text)
	return append(out, r.Close()...)
}

// line takes one complete source line.
func (r *Renderer) line(src string) []string {
	src = Clean(src)
	if !r.look.Colored() {
		return []string{src}
	}
	src = expandTabs(strings.TrimRight(src, " \t"))
	if r.fence != "" {
		return r.codeLine(src)
	}
	depth, body := cutQuote(src)
	if len(r.held) > 0 {
		if out, taken := r.continueHeld(src, depth, body); taken {
			return out
		}
		out := r.release()
		return append(out, r.fresh(src, depth, body)...)
	}
	return r.fresh(src, depth, body)
}

// fresh draws a line that begins something new, or holds it back.
func (r *Renderer) fresh(src string, depth int, body string) []string {
	switch {
	case strings.TrimSpace(body) == "" && depth == 0:
		if !r.atTheTop && !r.sawBlank {
			r.sawBlank = true
			return []string{""}
		}
		return nil
	case r.opensFence(body, depth):
		r.drawn()
		return nil
	case mayBeTable(body) || openSpan(body):
		r.held = []string{src}
		return nil
	}
	out := r.block(depth, body)
	r.drawn()
	return out
}

// continueHeld decides whether the held lines take src in.
func (r *Renderer) continueHeld(src string, depth int, body string) ([]string, bool) {
	heldDepth, _ := cutQuote(r.held[0])
	if depth != heldDepth || strings.TrimSpace(body) == "" {
		return nil, false
	}
	if r.table {
		if !strings.Contains(body, "|") {
			return nil, false
		}
		r.held = append(r.held, src)
		return nil, true
	}
	_, first := cutQuote(r.held[0])
	if len(r.held) == 1 && mayBeTable(first) && isDelimiterRow(body) {
		r.held = append(r.held, src)
		r.table = true
		return nil, true
	}
	if !openSpan(r.heldText()) || startsBlock(body) {
		return nil, false
	}
	r.held = append(r.held, src)
	// A paragraph that never closes its span must not be held for ever.
	if text := r.heldText(); openSpan(text) && len(r.held) < 40 {
		return nil, true
	}
	return r.release(), true
}

func (r *Renderer) heldText() string {
	bodies := make([]string, len(r.held))
	for i, src := range r.held {
		_, bodies[i] = cutQuote(src)
	}
	return strings.Join(bodies, "\n")
}

// release draws the held lines.
func (r *Renderer) release() []string {
	if len(r.held) == 0 {
		return nil
	}
	depth, _ := cutQuote(r.held[0])
	text, table := r.heldText(), r.table
	r.held, r.table = nil, false
	defer r.drawn()
	if table {
		return r.drawTable(depth, strings.Split(text, "\n"))
	}
	return r.block(depth, text)
}

func (r *Renderer) drawn() { r.atTheTop, r.sawBlank = false, false }
