// Package split cuts an answer into messages that the platform accepts.
//
// It guarantees:
//   - No piece is longer than the limit, counted like the strictest platform.
//   - Join returns the original text, byte for byte. Pieces lose only white space at their
//     edges, which the platform would not show, and they record it.
//   - Code blocks are closed in every piece. A block is broken only if it is longer than a
//     message, between two lines if possible, and reopened with its language.
//   - Cuts are at a paragraph, or else a line, a sentence, a word; never within a combined
//     character, a mention, a link or inline code, unless one of these is longer than a message.
package split

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Options limit the pieces. Zero fields mean the defaults.
type Options struct {
	Target int    // preferred maximum length of a piece
	Hard   int    // the platform's maximum length
	Most   int    // maximum number of pieces; a longer answer becomes a file (Fit only)
	Whole  string // what is being cut, if not an answer (Fit only)
}

// The defaults.
const (
	DefaultTarget = 1800 // leaves room for a footer
	DefaultHard   = 2000 // Discord's limit
	DefaultMost   = 5    // more would flood a channel

	leastTarget = 64 // below this, marks and mentions would leave no room for words
)

func (o Options) or() Options {
	if o.Hard <= 0 {
		o.Hard = DefaultHard
	}
	if o.Target <= 0 {
		o.Target = DefaultTarget
	}
	o.Hard = max(o.Hard, leastTarget+2*longestMark)
	o.Target = max(min(o.Target, o.Hard-2*longestMark), leastTarget) // a mark may have to be closed
	if o.Most <= 0 {
		o.Most = DefaultMost
	}
	o.Whole = cmp.Or(o.Whole, "answer")
	return o
}

// Piece is one message. Open and Close are marks of a code block that are in Text but not in the
// answer. Before and After are white space of the answer that is not in Text.
type Piece struct {
	Text   string
	Open   string
	Close  string
	Before string
	After  string
}

// Split cuts the text. White space alone gives no pieces, because the platform rejects empty messages.
func Split(text string, o Options) []Piece {
	return newCutter(text, o.or()).pieces(0)
}

// cutter is the state of cutting one text.
type cutter struct {
	text   string
	o      Options
	fences []fence
	spans  []span
	at     int  // where the next piece begins
	broken bool // the last piece ended in the middle of a word
}

func newCutter(text string, o Options) *cutter {
	c := &cutter{text: text, o: o, fences: fences(text)}
	c.spans = spans(text, c.fences)
	return c
}

// pieces returns at most limit pieces; 0 means all.
func (c *cutter) pieces(limit int) []Piece {
	var out []Piece
	lead := leading(c.text)
	if lead == len(c.text) {
		return nil
	}
	if f, ok := inside(c.fences, lead); ok && f.from < lead {
		lead = f.from
	}
	c.at = lead
	for c.at < len(c.text) && (limit == 0 || len(out) < limit) {
		out = append(out, c.next())
	}
	out[0].Before = c.text[:lead]
	return out
}

// next cuts off the next piece.
func (c *cutter) next() Piece {
	var p Piece
	f, again := c.reopened()
	if again {
		p.Open = f.open()
	}
	end := c.at + within(c.text[c.at:], c.o.Target-Length(p.Open))
	cut := c.cut(f, again, end)
	c.broken = cut.broken
	body := c.text[c.at:cut.at]
	next := cut.at
	if in, ok := inside(c.fences, cut.at); ok {
		p.Close = in.shut()
		if c.text[cut.at] == '\n' {
			next++
		}
	} else {
		next += leading(c.text[cut.at:])
		body = strings.TrimRightFunc(body, unicode.IsSpace)
	}
	p.After = c.text[c.at+len(body) : next]
	p.Text = p.Open + body + p.Close
	if last, ok := unclosed(p.Text); ok && p.Close == "" {
		p.Close = last.shut()
		p.Text += p.Close
	}
	c.at = next
	return p
}

// reopened returns the block that the piece continues.
func (c *cutter) reopened() (fence, bool) {
	f, ok := inside(c.fences, c.at)
	return f, ok && c.at >= f.body
}

func unclosed(text string) (fence, bool) {
	all := fences(text)
	if len(all) == 0 || all[len(all)-1].close < len(text) {
		return fence{}, false
	}
	return all[len(all)-1], true
}

// place is a place to cut.
type place struct {
	at     int
	broken bool // within a word
}

// cut finds the best place at or before end.
func (c *cutter) cut(in fence, again bool, end int) place {
	if c.broken && !again {
		// The rest of a broken line gets a piece of its own, so that a reader sees where the line ends.
		if i := strings.IndexByte(c.text[c.at:end], '\n'); i > 0 {
			if _, code := inside(c.fences, c.at+i); !code {
				return place{at: c.at + i}
			}
		}
	}
	if end == len(c.text) && c.endsShut(in, again, end) {
		return place{at: end}
	}
	if f, ok := inside(c.fences, end-1); ok && c.at < end-1 {
		return c.cutAtCode(f, end)
	}
	if f, ok := inside(c.fences, end); ok {
		return c.cutAtCode(f, end)
	}
	return c.cutProse(end)
}

// endsShut reports whether everything that is left fits together with
// the closing mark that its last block may lack.
func (c *cutter) endsShut(in fence, again bool, end int) bool {
	if len(c.fences) == 0 {
		return true
	}
	last := c.fences[len(c.fences)-1]
	if last.close < len(c.text) {
		return true
	}
	open := 0
	if again {
		open = Length(in.open())
	}
	return open+Length(c.text[c.at:end])+Length(last.shut()) <= c.o.Target
}

// cutAtCode cuts before a block that would be broken, or inside one that is longer than a message.
func (c *cutter) cutAtCode(f fence, end int) place {
	if end >= f.to && f.close < len(c.text) {
		return c.cutProse(end)
	}
	before := Length(c.text[c.at:max(f.from, c.at)])
	starts := f.from > c.at
	fits := Length(c.text[f.from:f.to])+Length(f.shut()) <= c.o.Target
	if starts && (fits || before >= c.o.Target/2 || f.body >= end) {
		if p := c.cutProse(f.from); p.at > c.at {
			return place{at: f.from}
		}
	}
	used := 0
	if !starts {
		used = Length(f.open())
	}
	end = c.at + within(c.text[c.at:], c.o.Target-used-Length(f.shut()))
	end = min(end, f.close-1)
	from := max(c.at, f.body)
	if i := strings.LastIndexByte(c.text[from:max(end+1, from)], '\n'); i > 0 {
		return place{at: from + i}
	}
	if end <= from {
		return place{at: c.forced(end)}
	}
	if i := strings.LastIndexAny(c.text[from:end], " \t"); i > 0 {
		return place{at: from + i + 1}
	}
	return place{at: c.forced(end)}
}

// cutProse prefers a paragraph, a line, a sentence, a word, in this order.
// The first three are not worth a nearly empty message.
func (c *cutter) cutProse(end int) place {
	worth := c.at + (end-c.at)/3
	best := [3]int{}
	word := 0
	for at := end; at > c.at; at-- {
		level := c.level(at)
		if level == noBreak || !c.free(at) {
			continue
		}
		if level == atParagraph && at > worth {
			return place{at: at}
		}
		if level != atWord && at > worth && best[level] == 0 {
			best[level] = at
		}
		word = max(word, at)
	}
	for _, at := range best {
		if at > 0 {
			return place{at: at}
		}
	}
	if word > 0 {
		return place{at: word}
	}
	if end == len(c.text) {
		return place{at: end}
	}
	return place{at: c.forced(end), broken: true}
}

// The places to cut, best first.
const (
	atParagraph = iota
	atLine
	atSentence
	atWord
	noBreak
)

// level returns what ends at the offset.
func (c *cutter) level(at int) int {
	if at >= len(c.text) {
		return noBreak
	}
	if b, a := c.text[at-1], c.text[at]; b < utf8.RuneSelf && a > ' ' && a < utf8.RuneSelf {
		return noBreak // most places are in the middle of a word
	}
	after, _ := utf8.DecodeRuneInString(c.text[at:])
	before, _ := utf8.DecodeLastRuneInString(c.text[:at])
	switch {
	case unicode.IsSpace(before):
		return noBreak // the place before the space is equivalent
	case strings.HasPrefix(c.text[at:], "\n\n"):
		return atParagraph
	case after == '\n':
		return atLine
	case strings.ContainsRune("。！？", before):
		return atSentence
	case !unicode.IsSpace(after):
		return noBreak
	case strings.ContainsRune(".!?…", before):
		return atSentence
	default:
		return atWord
	}
}

// forced cuts where there is no good place. It avoids breaking combined
// characters and unbreakable things if that leaves anything.
func (c *cutter) forced(end int) int {
	for end > c.at+1 && end < len(c.text) && !utf8.RuneStart(c.text[end]) && !between(c.text, end) {
		end--
	}
	at := end
	if s, ok := c.span(at); ok && s.from > c.at {
		at = s.from
	}
	if w := c.at + whole(c.text[c.at:], at-c.at); w > c.at {
		at = w
	}
	if left := ticks(c.text[at:]); at > c.at && left > 0 && left <= longestMark && c.text[at-1] == '`' {
		at -= longestMark + 1 - left // the rest of a ruler must remain a ruler
	}
	if at > c.at {
		return at
	}
	_, n := utf8.DecodeRuneInString(c.text[c.at:])
	return max(end, c.at+n)
}

// free reports whether a cut at the offset breaks neither code nor another unbreakable thing.
func (c *cutter) free(at int) bool {
	if _, ok := inside(c.fences, at); ok {
		return false
	}
	_, ok := c.span(at)
	return !ok
}

func leading(s string) int { return len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace)) }
