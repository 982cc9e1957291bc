package participants

import (
	"bytes"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/text"
)

const (
	space      = " \t\r\n"
	thinkOpen  = "<thinking>"
	thinkClose = "</thinking>"
)

// place is the context of the next byte in an answer.
type place uint8

const (
	atStart   place = iota // nothing has been said yet
	atLine                 // a line begins
	inLine                 // in the middle of one
	afterTag               // after a call in tags: white space is dropped
	afterCall              // after a call of the script: only another call may follow
)

// answer parses an answer as it arrives. It only emits what no later byte can change,
// so it does not matter how the answer is split into pieces.
type answer struct {
	*reading
	put func(model.Chunk) // receives every decided piece

	buf  []byte // undecided
	tail []byte // may become a stop sequence; not yet in buf
	held []byte // white space that is text only if text follows
	at   place

	tried    int  // length of the buffer when more input was needed
	broken   int  // tags that turned out to be text
	newline  bool // the white space just read ends a line
	labelled bool // the bot's own label was removed
	trims    bool // white space at the beginning is not text
	isThink  bool
	fence    byte // the mark of the current fence, or 0
	ticks    int  // number of backticks that opened the current code, or 0
	scan     scanner

	cut       bool // the rest is ignored
	discarded bool // it began as somebody else
	calls     int
	blocks    chat.Blocks
	text      strings.Builder
	thought   strings.Builder
}

func (r *reading) answer(put func(model.Chunk)) *answer {
	a := &answer{reading: r, put: put, isThink: r.thinking, trims: r.trim}
	if r.midline {
		a.at = inLine
	}
	return a
}

// feed adds more of the answer.
func (a *answer) feed(piece string) {
	if a.cut {
		return
	}
	a.tail = append(a.tail, piece...)
	first, end := -1, -1
	hold := 0
	for _, stop := range a.stops {
		// The stop sequence that is complete first counts, wherever it began.
		if i := bytes.Index(a.tail, []byte(stop)); i >= 0 && (end < 0 || i+len(stop) < end || i+len(stop) == end && i < first) {
			first, end = i, i+len(stop)
		}
		hold = max(hold, text.Overlap(a.tail, stop))
	}
	if first >= 0 {
		a.buf = append(a.buf, a.tail[:first]...)
		a.tail = nil
		a.run(true)
		a.held, a.cut = nil, true
		return
	}
	n := len(a.tail) - hold
	a.buf = append(a.buf, a.tail[:n]...)
	a.tail = append(a.tail[:0], a.tail[n:]...)
	a.run(false)
}

// finish ends the answer and returns its blocks. stopped says that a stop
// sequence ended it; the white space before that was part of it.
func (a *answer) finish(stopped bool) chat.Blocks {
	if !a.cut {
		a.buf = append(a.buf, a.tail...)
		a.tail = nil
		a.run(true)
		if !a.cut && !stopped {
			a.flushText(a.held)
		}
	}
	a.endThought()
	a.endText()
	if a.discarded {
		return nil
	}
	return a.blocks
}

// run decides as much as it can. final means that nothing more will come. It does
// not scan a long unfinished piece again for every byte.
func (a *answer) run(final bool) {
	if !final && len(a.buf)-a.tried < a.tried/8 {
		return
	}
	for !a.cut && len(a.buf) > 0 {
		at, think := a.at, a.isThink
		n, ok := a.step(final)
		if !ok {
			a.tried = len(a.buf)
			return
		}
		a.tried = 0
		if a.buf = a.buf[n:]; n > 0 || a.at != at || a.isThink != think {
			a.scan = scanner{}
		}
	}
}

// step decides about the beginning of the buffer and returns how many bytes are
// done. It returns false if that depends on what comes next.
func (a *answer) step(final bool) (int, bool) {
	if a.isThink {
		return a.think(final)
	}
	switch a.at {
	case atStart:
		return a.start(final)
	case atLine:
		return a.line(final)
	case afterTag, afterCall:
		return a.after(final)
	default:
		return a.inside(final)
	}
}

// begun reports whether b begins with s. wait means that it may still turn out to.
func begun(b []byte, s string, final bool) (yes, wait bool) {
	if len(b) >= len(s) {
		return string(b[:len(s)]) == s, false
	}
	return false, !final && strings.HasPrefix(s, string(b))
}

// anyBegun is begun for several strings. which is the index of the longest match, or -1.
func anyBegun(b []byte, list []string, suffix string, final bool) (which int, wait bool) {
	which = -1
	for i, s := range list {
		yes, may := begun(b, s+suffix, final)
		if may {
			return -1, true
		}
		if yes && (which < 0 || len(s) > len(list[which])) {
			which = i
		}
	}
	return which, false
}

func (a *answer) think(final bool) (int, bool) {
	if i := bytes.Index(a.buf, []byte(thinkClose)); i >= 0 {
		a.pushThought(a.buf[:i])
		a.endThought()
		a.isThink, a.at, a.trims = false, atStart, true
		return i + len(thinkClose), true
	}
	n := len(a.buf)
	if !final {
		n -= text.Overlap(a.buf, thinkClose)
	}
	a.pushThought(a.buf[:n])
	return n, n > 0
}

// start handles the beginning of the answer. The bot's own label is
// removed; somebody else's label ends the answer.
func (a *answer) start(final bool) (int, bool) {
	rest := bytes.TrimLeft(a.buf, space)
	if blank := len(a.buf) - len(rest); blank > 0 {
		if a.newline = a.buf[blank-1] == '\n'; !a.trims {
			a.pushText(a.buf[:blank])
		}
		return blank, true
	}
	if i, wait := anyBegun(rest, a.others, "", final); i >= 0 {
		a.cut, a.discarded = true, a.calls == 0
		return 0, true
	} else if wait {
		return 0, false
	}
	if !a.labelled {
		i, wait := anyBegun(rest, a.own, ":", final)
		if wait {
			return 0, false
		}
		if i >= 0 {
			a.labelled, a.trims, a.held = true, true, nil
			return len(a.own[i]) + 1, true
		}
	}
	if a.thought.Len() == 0 && len(a.blocks) == 0 {
		yes, wait := begun(rest, thinkOpen, final)
		if wait {
			return 0, false
		}
		if yes {
			a.isThink, a.held = true, nil
			return len(thinkOpen), true
		}
	}
	if a.at = atLine; len(a.held) > 0 && !a.newline {
		a.at = inLine
	}
	return 0, true
}

// line handles the beginning of a line.
func (a *answer) line(final bool) (int, bool) {
	if i, wait := anyBegun(a.buf, a.others, "", final); i >= 0 {
		a.cut, a.held = true, nil
		return 0, true
	} else if wait {
		return 0, false
	}
	if a.script {
		if i, wait := anyBegun(a.buf, a.own, "<[", final); i >= 0 {
			a.cut, a.held = true, nil // the model invents a result
			return 0, true
		} else if wait {
			return 0, false
		}
	}
	if a.script && len(a.tools) > 0 && a.fence == 0 {
		i, wait := anyBegun(a.buf, a.own, ">[", final)
		if wait {
			return 0, false
		}
		if i >= 0 {
			return a.callLine(len(a.own[i])+2, final)
		}
	}
	return a.fenceLine(final)
}

// fenceLine checks whether a line begins or ends a code block.
func (a *answer) fenceLine(final bool) (int, bool) {
	a.at, a.ticks = inLine, 0
	indent := 0
	for indent < 3 && indent < len(a.buf) && a.buf[indent] == ' ' {
		indent++
	}
	n := indent
	for n < len(a.buf) && (a.buf[n] == '`' || a.buf[n] == '~') && a.buf[n] == a.buf[indent] {
		n++
	}
	if n == len(a.buf) && !final {
		a.at = atLine
		return 0, false
	}
	if n-indent < 3 {
		return 0, true
	}
	switch a.fence {
	case 0:
		a.fence = a.buf[indent]
	case a.buf[indent]:
		a.fence = 0
	}
	a.pushText(a.buf[:n])
	return n, true
}

// inside handles the rest of a line.
func (a *answer) inside(final bool) (int, bool) {
	i := bytes.IndexAny(a.buf, "\n`<")
	if i < 0 {
		a.pushText(a.buf)
		return len(a.buf), true
	}
	if i > 0 {
		a.pushText(a.buf[:i])
		return i, true
	}
	switch a.buf[0] {
	case '\n':
		a.pushText(a.buf[:1])
		a.at = atLine
		return 1, true
	case '`':
		return a.backticks(final)
	default:
		if a.script && len(a.tools) > 0 && a.fence == 0 && a.ticks == 0 {
			return a.tag(final)
		}
		a.pushText(a.buf[:1])
		return 1, true
	}
}

func (a *answer) backticks(final bool) (int, bool) {
	n := 1
	for n < len(a.buf) && a.buf[n] == '`' {
		n++
	}
	if n == len(a.buf) && !final {
		return 0, false
	}
	switch {
	case a.fence != 0:
	case a.ticks == 0:
		a.ticks = n
	case a.ticks == n:
		a.ticks = 0
	}
	a.pushText(a.buf[:n])
	return n, true
}

// after handles what follows a call.
func (a *answer) after(final bool) (int, bool) {
	rest := bytes.TrimLeft(a.buf, space)
	if blank := len(a.buf) - len(rest); blank > 0 {
		a.newline = a.newline || bytes.IndexByte(a.buf[:blank], '\n') >= 0
		return blank, true
	}
	if a.at == afterTag {
		if a.at = inLine; a.newline {
			a.at = atLine
		}
		return 0, true
	}
	i, wait := anyBegun(rest, a.own, ">[", final)
	if wait {
		return 0, false
	}
	if a.at = atLine; i < 0 {
		a.cut = true // whatever it is, it was written without having seen the result
	}
	return 0, true
}

// pushText adds text. White space at its end waits for what follows.
func (a *answer) pushText(b []byte) {
	bare := bytes.TrimRight(b, space)
	if len(bare) == 0 {
		a.held = append(a.held, b...)
		return
	}
	a.flushText(append(a.held, bare...))
	a.held = append(a.held[:0], b[len(bare):]...)
}

func (a *answer) flushText(b []byte) {
	if len(b) > 0 {
		a.text.Write(b)
		a.put(model.TextDelta{Text: string(b)})
	}
}

func (a *answer) endText() {
	if a.text.Len() > 0 {
		a.blocks = append(a.blocks, chat.Text{Text: a.text.String()})
		a.text.Reset()
	}
}

func (a *answer) pushThought(b []byte) {
	if len(b) > 0 {
		a.thought.Write(b)
		a.put(model.ThinkingDelta{Text: string(b)})
	}
}

func (a *answer) endThought() {
	if text := strings.TrimSpace(a.thought.String()); text != "" {
		a.blocks = append(a.blocks, chat.Thinking{Text: text})
	}
	a.thought.Reset()
}
