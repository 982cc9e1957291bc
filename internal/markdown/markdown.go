// Package markdown renders the Markdown of models: for a terminal line by line while it is still being written, and for
// web pages block by block.
//
// Terminal: a returned line never changes. What may still change (an open paragraph, a table, an unfinished line) is the
// tail, which is available at any time. Without colours the text is passed on unchanged.
//
// Web: see Blocks. Raw HTML is shown as text, and links lead to safe schemes only.
//
// Both: no input makes it panic or slow, and of the input's control characters only the newline reaches the output, so a
// model cannot move the cursor, set a title or hide text.
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
	held  []string // complete source lines that are drawn once the next line is known
	table bool     // held is a table

	fence     string // the fence that closes the open code block, "" for none
	fencePad  string // the prefix of the fence's lines on the screen
	fenceCut  int    // columns of indentation that belong to the fence itself
	quoted    int    // quote depth at the fence
	highlight highlighter
	inList    bool
	sawBlank  bool // the last line was blank; further blank lines are dropped
	atTheTop  bool // nothing was drawn yet: leading blank lines are dropped
}

// minWidth keeps wrapping sensible on absurdly narrow terminals.
const minWidth = 8

// New returns a renderer for lines of at most width columns. Without colours, only control characters are removed, and width is ignored.
func New(width int, look theme.Theme) *Renderer {
	r := &Renderer{look: look, atTheTop: true}
	r.SetWidth(width)
	return r
}

// SetWidth changes the width of future lines.
func (r *Renderer) SetWidth(width int) { r.width = max(width, minWidth) }

// SetTheme changes the colours of future lines.
func (r *Renderer) SetTheme(look theme.Theme) { r.look = look }

// Write takes the next piece and returns the lines that are now final, without newlines.
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

// Tail draws what is not final yet, as if nothing more followed.
func (r *Renderer) Tail() []string {
	if r.rest == "" && len(r.held) == 0 {
		return nil
	}
	trial := *r
	trial.held = append([]string(nil), r.held...)
	return trial.Close()
}

// Close ends the text: the tail becomes final. The renderer can then be used for another text.
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

// Drop discards the tail.
func (r *Renderer) Drop() { *r = Renderer{width: r.width, look: r.look, atTheTop: true} }

// Render draws a whole text.
func Render(text string, width int, look theme.Theme) []string {
	r := New(width, look)
	out := r.Write(text)
	return append(out, r.Close()...)
}

// line handles one complete source line.
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

// fresh draws a line that starts something new, or holds it back.
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

// continueHeld decides whether src joins the held lines.
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
	// A paragraph that never closes its span must not be held forever.
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
