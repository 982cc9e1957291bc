package files

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/text"
	"chorus/internal/tool"
)

// fileLines is a file as lines without their newlines.
type fileLines struct {
	lines []string
	end   bool // the last line has a newline
}

func split(content string) fileLines {
	if content == "" {
		return fileLines{end: true}
	}
	lines := strings.Split(content, "\n")
	if lines[len(lines)-1] == "" {
		return fileLines{lines[:len(lines)-1], true}
	}
	return fileLines{lines, false}
}

func (t fileLines) join() string {
	if len(t.lines) == 0 {
		return ""
	}
	content := strings.Join(t.lines, "\n")
	if t.end {
		content += "\n"
	}
	return content
}

// apply makes the hunks' changes. The context must match; only the
// position may differ from what the patch says.
func apply(content string, hunks []hunk) (string, error) {
	old := split(content)
	hunks = fitEndings(content, hunks)
	out := fileLines{end: old.end}
	done, drift := 0, 0 // lines of old already used; offset of the last hunk from its stated position
	for n, h := range hunks {
		before := h.side('-')
		at, err := find(old, h, before, done, drift)
		if err != nil {
			return "", tool.Mistake(fmt.Sprintf("hunk %d: %s", n+1, err))
		}
		if h.start > 0 {
			drift = at - h.expected()
		}
		out.lines = append(out.lines, old.lines[done:at]...)
		out.lines = append(out.lines, h.kept(old, at)...)
		done = at + len(before)
		if done == len(old.lines) {
			out.end = h.newline(old.end)
		}
	}
	out.lines = append(out.lines, old.lines[done:]...)
	return out.join(), nil
}

// side returns the hunk's old ('-') or new ('+') text.
func (h hunk) side(op byte) []string {
	var lines []string
	for _, l := range h.lines {
		if l.op == ' ' || l.op == op {
			lines = append(lines, l.text)
		}
	}
	return lines
}

// kept returns the new text, with context lines taken from the file itself.
func (h hunk) kept(old fileLines, at int) []string {
	var lines []string
	for _, l := range h.lines {
		switch l.op {
		case ' ':
			lines = append(lines, old.lines[at])
			at++
		case '-':
			at++
		case '+':
			lines = append(lines, l.text)
		}
	}
	return lines
}

// newline reports whether a file whose last line this hunk touches ends with a newline.
func (h hunk) newline(old bool) bool {
	for i := len(h.lines) - 1; i >= 0; i-- {
		switch l := h.lines[i]; l.op {
		case '+':
			return !l.noEOL
		case ' ':
			if l.noEOL {
				return false
			}
			return old || i < len(h.lines)-1
		}
	}
	return true
}

// expected returns the index of the first old line according to the header.
func (h hunk) expected() int {
	if h.empty {
		return h.start // lines are added after this one
	}
	return h.start - 1
}

// find returns where the hunk's old lines are in the file, at or after from.
func find(old fileLines, h hunk, before []string, from, drift int) (int, error) {
	limit := len(old.lines) - len(before)
	fits := func(at int) bool {
		return at >= from && at <= limit && slices.Equal(old.lines[at:at+len(before)], before) && h.endFits(old, at, len(before))
	}
	for _, anchor := range h.anchors {
		i := slices.IndexFunc(old.lines[min(from, len(old.lines)):], func(l string) bool { return strings.TrimSpace(l) == anchor })
		if i < 0 {
			return 0, fmt.Errorf("the line %q after @@ was not found", anchor)
		}
		from += i + 1
	}
	switch {
	case len(before) == 0:
		return insertion(old, h, from, drift)
	case h.atEnd:
		if fits(limit) {
			return limit, nil
		}
		return 0, fmt.Errorf("its context does not match the end of the file")
	case h.start > 0 && fits(h.expected()+drift):
		return h.expected() + drift, nil
	}
	var places []int
	for at := from; at <= limit; at++ {
		if fits(at) {
			places = append(places, at)
		}
	}
	return choose(old, h, before, places, from, drift)
}

// insertion returns where a hunk without old lines goes: where the
// header says, after its anchor, or at the end.
func insertion(old fileLines, h hunk, from, drift int) (int, error) {
	switch {
	case h.start > 0 || h.empty && h.start == 0 && len(h.anchors) == 0 && !h.atEnd:
		at := h.expected() + drift
		if at < from || at > len(old.lines) {
			return 0, fmt.Errorf("the file has no line %d to insert after", h.start)
		}
		return at, nil
	case len(h.anchors) > 0:
		return from, nil
	}
	return len(old.lines), nil
}

// near is how far a hunk may be from its stated position if its text occurs more than once.
const near = 20

// choose decides between the positions where the old lines match. A single match is unambiguous. Among
// several, only one that is much closer to the stated position counts, or the first after an anchor.
func choose(old fileLines, h hunk, before []string, places []int, from, drift int) (int, error) {
	switch {
	case len(places) == 0:
		return 0, mismatch(old, h, before, from, drift)
	case len(places) == 1 || len(h.anchors) > 0:
		return places[0], nil
	case h.start > 0:
		want := h.expected() + drift
		slices.SortFunc(places, func(a, b int) int { return abs(a-want) - abs(b-want) })
		if abs(places[0]-want) <= near && abs(places[0]-want) < abs(places[1]-want) {
			return places[0], nil
		}
	}
	lines := make([]string, 0, 5)
	slices.Sort(places)
	for _, at := range places[:min(len(places), 5)] {
		lines = append(lines, fmt.Sprint(at+1))
	}
	return 0, fmt.Errorf("its context matches in %d places (lines %s); give more context", len(places), strings.Join(lines, ", "))
}

// mismatch returns which line is the first that differs.
func mismatch(old fileLines, h hunk, before []string, from, drift int) error {
	at := from
	if h.start > 0 {
		at = max(h.expected()+drift, from)
	} else if i := slices.Index(old.lines[min(from, len(old.lines)):], before[0]); i >= 0 {
		at = from + i
	}
	for i, want := range before {
		if at+i >= len(old.lines) {
			return fmt.Errorf("its context does not match: the file ends before %q", want)
		}
		if old.lines[at+i] != want {
			return fmt.Errorf("its context does not match: line %d is %q, the patch says %q", at+i+1, text.Clip(old.lines[at+i], 200), text.Clip(want, 200))
		}
	}
	return fmt.Errorf("its context does not match the file")
}

// endFits reports whether "no newline at end of file" is true at the
// hunk's position. A patch may omit that line.
func (h hunk) endFits(old fileLines, at, count int) bool {
	for i, l := range h.lines {
		if l.noEOL && l.op != '+' {
			last := i == len(h.lines)-1 || l.op == '-'
			return last && at+count == len(old.lines) && !old.end
		}
	}
	return true
}

// fitEndings gives the hunks the file's line endings if those of the file and of the hunks
// are each consistent: patches lose or gain carriage returns in transit.
func fitEndings(content string, hunks []hunk) []hunk {
	newlines := strings.Count(content, "\n")
	returns := strings.Count(content, "\r\n")
	lines, ending, olds := 0, 0, 0
	for _, h := range hunks {
		for _, l := range h.lines {
			lines++
			if l.op != '+' {
				olds++
			}
			if strings.HasSuffix(l.text, "\r") {
				ending++
			}
		}
	}
	var fix func(string) string
	switch {
	case newlines > 0 && returns == newlines && ending == 0:
		fix = func(s string) string { return s + "\r" }
	case olds > 0 && returns == 0 && ending == lines && !strings.Contains(content, "\r"):
		fix = func(s string) string { return strings.TrimSuffix(s, "\r") }
	default:
		return hunks
	}
	out := make([]hunk, len(hunks))
	for i, h := range hunks {
		out[i] = h
		out[i].lines = slices.Clone(h.lines)
		for j := range out[i].lines {
			if l := &out[i].lines[j]; !l.noEOL {
				l.text = fix(l.text)
			}
		}
	}
	return out
}

func abs(n int) int { return max(n, -n) }
