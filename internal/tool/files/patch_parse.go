package files

import (
	"fmt"
	"strconv"
	"strings"

	"chorus/internal/tool"
)

// section is what a patch does to one file.
type section struct {
	kind    sectionKind
	path    string
	moveTo  string // "": it is not moved
	mode    uint32 // 0: unchanged
	hunks   []hunk
	content string // of an added file
}

type sectionKind int

const (
	update sectionKind = iota
	add
	remove
)

// hunk is one place in a file: context, removed and added lines.
type hunk struct {
	start   int      // line of the old file where it begins, from 1; 0: unknown
	empty   bool     // the old side has no lines; start is the line before
	anchors []string // lines to find first, in order
	atEnd   bool     // it ends at the end of the file
	lines   []hunkLine
}

type hunkLine struct {
	op    byte // ' ', '-' or '+'
	text  string
	noEOL bool // the file ends here without a newline
}

// parsePatch parses a unified diff or the Begin-Patch form. It reads no files:
// what a patch touches is known before anything happens.
func parsePatch(text string) ([]section, error) {
	lines := strings.Split(text, "\n")
	// Both forms may come wrapped in code fences or blank lines.
	for len(lines) > 0 && (strings.TrimSpace(lines[0]) == "" || strings.HasPrefix(lines[0], "```")) {
		lines = lines[1:]
	}
	for len(lines) > 0 && (lines[len(lines)-1] == "" || strings.HasPrefix(lines[len(lines)-1], "```")) {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return nil, tool.Mistake("The patch is empty.")
	}
	p := &parser{lines: lines}
	var (
		sections []section
		err      error
	)
	if strings.TrimSpace(lines[0]) == "*** Begin Patch" {
		sections, err = p.beginPatch()
	} else {
		sections, err = p.unified()
	}
	if err == nil && len(sections) == 0 {
		err = tool.Mistake("The patch changes nothing: it has neither a file header (---/+++) nor *** Begin Patch.")
	}
	return sections, err
}

type parser struct {
	lines []string
	at    int
}

func (p *parser) more() bool { return p.at < len(p.lines) }

// head returns the current line without a carriage return, which headers never have.
func (p *parser) head() string { return strings.TrimSuffix(p.lines[p.at], "\r") }

func (p *parser) fail(format string, args ...any) error {
	return tool.Mistake(fmt.Sprintf("Line %d of the patch: ", p.at+1) + fmt.Sprintf(format, args...))
}

// beginPatch parses "*** Begin Patch" up to "*** End Patch".
func (p *parser) beginPatch() ([]section, error) {
	var sections []section
	for p.at = 1; p.more(); {
		line := strings.TrimRight(p.head(), " \t")
		if line == "*** End Patch" {
			return sections, nil
		}
		s, err := p.beginSection(line)
		if err != nil {
			return nil, err
		}
		sections = append(sections, s)
	}
	return nil, p.fail("*** End Patch is missing.")
}

func (p *parser) beginSection(line string) (section, error) {
	for prefix, kind := range map[string]sectionKind{"*** Add File: ": add, "*** Delete File: ": remove, "*** Update File: ": update} {
		name, ok := strings.CutPrefix(line, prefix)
		if !ok {
			continue
		}
		s := section{kind: kind, path: strings.TrimSpace(name)}
		p.at++
		switch kind {
		case add:
			return s, p.added(&s)
		case update:
			return s, p.updated(&s)
		}
		return s, nil
	}
	return section{}, p.fail("expected *** Add File:, *** Update File:, *** Delete File: or *** End Patch, found %q.", line)
}

// added reads the lines of a new file, each with a plus.
func (p *parser) added(s *section) error {
	var out strings.Builder
	for p.more() && !strings.HasPrefix(p.lines[p.at], "*** ") {
		text, ok := strings.CutPrefix(p.lines[p.at], "+")
		if !ok {
			return p.fail("every line of an added file begins with +.")
		}
		out.WriteString(text + "\n")
		p.at++
	}
	s.content = out.String()
	return nil
}

// updated reads the hunks of a changed file.
func (p *parser) updated(s *section) error {
	if p.more() {
		if to, ok := strings.CutPrefix(p.head(), "*** Move to: "); ok {
			s.moveTo = strings.TrimSpace(to)
			p.at++
		}
	}
	var h hunk
	flush := func() {
		for n := len(h.lines); n > 0 && h.lines[n-1].op == 0; n-- {
			h.lines = h.lines[:n-1] // blank lines between hunks are not context
		}
		h.empty = h.start > 0
		for i, l := range h.lines {
			if l.op == 0 {
				h.lines[i].op = ' '
			}
			h.empty = h.empty && l.op == '+'
		}
		if len(h.lines) > 0 {
			s.hunks = append(s.hunks, h)
			h = hunk{}
		}
	}
	for p.more() {
		line := p.lines[p.at]
		head := strings.TrimRight(p.head(), " \t")
		switch {
		case head == "*** End of File":
			h.atEnd = true
			flush()
		case strings.HasPrefix(line, "*** "):
			flush()
			return p.checkUpdate(s)
		case strings.HasPrefix(line, "@@"):
			flush()
			if anchor := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(head, "@@"), "@@")); anchor != "" {
				if start, _, ok := ranges(head); ok {
					h.start = start
				} else {
					h.anchors = append(h.anchors, anchor)
				}
			}
		case line == "" || line == "\r":
			h.lines = append(h.lines, hunkLine{text: line})
		case line[0] == ' ' || line[0] == '-' || line[0] == '+':
			h.lines = append(h.lines, hunkLine{op: line[0], text: line[1:]})
		default:
			return p.fail("a line of a hunk begins with a space, + or -.")
		}
		p.at++
	}
	return p.fail("*** End Patch is missing.")
}

func (p *parser) checkUpdate(s *section) error {
	if len(s.hunks) == 0 && s.moveTo == "" {
		return p.fail("*** Update File: %s has no changes.", s.path)
	}
	return nil
}

// ranges parses "@@ -1,2 +3,4 @@ …".
func ranges(line string) (oldStart, oldCount int, ok bool) {
	start, counts, ok := hunkHeader(line)
	return start, counts[0], ok
}

func hunkHeader(line string) (start int, counts [2]int, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return 0, counts, false
	}
	body, _, ok := strings.Cut(rest, " @@")
	before, after, both := strings.Cut(body, " +")
	if !ok || !both {
		return 0, counts, false
	}
	for i, part := range []string{before, after} {
		first, count, hasCount := strings.Cut(part, ",")
		n, err := strconv.Atoi(first)
		if err != nil || n < 0 {
			return 0, counts, false
		}
		if i == 0 {
			start = n
		}
		counts[i] = 1
		if hasCount {
			if counts[i], err = strconv.Atoi(count); err != nil || counts[i] < 0 {
				return 0, counts, false
			}
		}
	}
	return start, counts, true
}
