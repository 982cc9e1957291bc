package files

import (
	"strconv"
	"strings"
)

// unified parses a unified diff, plain or git's.
func (p *parser) unified() ([]section, error) {
	var sections []section
	for p.more() {
		line := p.head()
		switch {
		case strings.HasPrefix(line, "diff --git "):
			s, found, err := p.gitSection()
			if err != nil {
				return nil, err
			}
			if found {
				sections = append(sections, s)
			}
		case p.atHeader():
			s := section{}
			if err := p.fileSection(&s); err != nil {
				return nil, err
			}
			sections = append(sections, s)
		case strings.HasPrefix(line, "@@ -"):
			return nil, p.fail("a hunk without a file: --- and +++ lines are missing before it.")
		default:
			p.at++ // prose between files, as in a mail
		}
	}
	return sections, nil
}

// atHeader reports whether the next two lines are "--- old" and "+++ new".
func (p *parser) atHeader() bool {
	return p.at+1 < len(p.lines) && strings.HasPrefix(p.lines[p.at], "--- ") && strings.HasPrefix(p.lines[p.at+1], "+++ ")
}

// gitSection parses git's extended header and what follows it. found
// is false if the header describes no change.
func (p *parser) gitSection() (s section, found bool, err error) {
	p.at++
	from, to := "", ""
	for ; p.more() && !strings.HasPrefix(p.lines[p.at], "diff --git ") && !p.atHeader(); p.at++ {
		line := p.head()
		key, value := splitHeader(line)
		switch key {
		case "rename from":
			from = unquote(value)
		case "rename to":
			to = unquote(value)
		case "new mode", "new file mode":
			mode, err := strconv.ParseUint(value, 8, 32)
			if err != nil || mode&0o170000 != 0o100000 {
				return s, false, p.fail("only regular files can be patched, not mode %s.", value)
			}
			s.mode = uint32(mode & 0o777)
			found = true
		case "copy from", "copy to", "GIT binary patch", "Binary files":
			return s, false, p.fail("%s is not supported here.", line)
		}
		if strings.HasPrefix(line, "@@ -") {
			return s, false, p.fail("a hunk without a file: --- and +++ lines are missing before it.")
		}
	}
	if p.atHeader() {
		err = p.fileSection(&s)
		if err == nil && from != "" && s.moveTo == "" && s.path == from && to != from {
			s.moveTo = to
		}
		return s, true, err
	}
	if from != "" && to != "" {
		s.path, s.moveTo = from, to
		return s, true, nil
	}
	if found {
		return s, false, p.fail("a new mode or an empty file needs its --- and +++ lines; use write instead.")
	}
	return s, false, nil
}

// splitHeader splits a git header line into key and value.
func splitHeader(line string) (key, value string) {
	for _, key := range []string{"rename from", "rename to", "copy from", "copy to", "new file mode", "new mode", "GIT binary patch", "Binary files"} {
		if value, ok := strings.CutPrefix(line, key); ok {
			return key, strings.TrimSpace(value)
		}
	}
	return "", ""
}

// fileSection parses --- and +++ and the hunks below them.
func (p *parser) fileSection(s *section) error {
	from, to := fileName(p.head()), ""
	p.at++
	to = fileName(p.head())
	p.at++
	none := func(name string) bool { return name == "/dev/null" }
	if none(from) && none(to) {
		return p.fail("both sides are /dev/null.")
	}
	// Drop git's a/ and b/ if both sides have them.
	if (none(from) || strings.HasPrefix(from, "a/")) && (none(to) || strings.HasPrefix(to, "b/")) {
		from, to = strings.TrimPrefix(from, "a/"), strings.TrimPrefix(to, "b/")
	}
	switch {
	case none(from):
		s.kind, s.path = add, to
	case none(to):
		s.kind, s.path = remove, from
	default:
		s.path = from
		if to != from {
			s.moveTo = to
		}
	}
	for p.more() && strings.HasPrefix(p.lines[p.at], "@@ -") {
		h, err := p.hunk()
		if err != nil {
			return err
		}
		s.hunks = append(s.hunks, h)
	}
	if len(s.hunks) == 0 && s.moveTo == "" && s.mode == 0 && s.kind == update {
		return p.fail("%s has no hunks.", s.path)
	}
	if s.kind == add {
		return p.newContent(s)
	}
	return nil
}

// newContent reads the text of a file that a diff against /dev/null creates.
func (p *parser) newContent(s *section) error {
	var lines []string
	end := true
	for _, h := range s.hunks {
		for _, l := range h.lines {
			if l.op != '+' {
				return p.fail("%s is new: every line must begin with +.", s.path)
			}
			lines = append(lines, l.text)
			end = !l.noEOL
		}
	}
	s.hunks = nil
	s.content = fileLines{lines, end}.join()
	return nil
}

// fileName extracts the name from a "--- name<TAB>time" line.
func fileName(line string) string {
	name, _, _ := strings.Cut(line[4:], "\t")
	return unquote(strings.TrimSpace(name))
}

// unquote decodes git's quoting of unusual names.
func unquote(name string) string {
	if len(name) > 1 && name[0] == '"' {
		if plain, err := strconv.Unquote(name); err == nil {
			return plain
		}
	}
	return name
}

// hunk parses one hunk. The counts in its header decide where it ends. If they do not
// fit, as models often miscount, it ends before the next header.
func (p *parser) hunk() (hunk, error) {
	start, counts, ok := hunkHeader(p.head())
	if !ok {
		return hunk{}, p.fail("cannot read the hunk header %q.", p.head())
	}
	p.at++
	body := p.at
	h, ok := p.counted(counts)
	if !ok {
		p.at = body
		var err error
		if h, err = p.uncounted(); err != nil {
			return h, err
		}
	}
	h.start, h.empty = start, true
	for _, l := range h.lines {
		if l.op != '+' {
			h.empty = false
		}
	}
	if len(h.lines) == 0 {
		return h, p.fail("the hunk is empty.")
	}
	return h, nil
}

// counted reads exactly as many lines as the header says.
func (p *parser) counted(counts [2]int) (h hunk, ok bool) {
	for (counts[0] > 0 || counts[1] > 0) && p.more() {
		if !p.hunkLine(&h) {
			return h, false
		}
		switch h.lines[len(h.lines)-1].op {
		case ' ':
			counts[0]--
			counts[1]--
		case '-':
			counts[0]--
		case '+':
			counts[1]--
		}
		p.at++
		p.noNewline(&h)
	}
	return h, counts == [2]int{} && (!p.more() || p.boundary())
}

// uncounted reads up to the next header. Trailing blank lines are not context.
func (p *parser) uncounted() (h hunk, err error) {
	for p.more() && !p.boundaryHeader() {
		if !p.hunkLine(&h) {
			return h, p.fail("a line of a hunk begins with a space, + or -.")
		}
		p.at++
		p.noNewline(&h)
	}
	for n := len(h.lines); n > 0 && p.lines[p.at-1] == "" && h.lines[n-1] == (hunkLine{op: ' '}); n = len(h.lines) {
		h.lines = h.lines[:n-1]
	}
	return h, nil
}

func (p *parser) hunkLine(h *hunk) bool {
	line := p.lines[p.at]
	switch {
	case line == "" || line == "\r": // the space of an empty context line was lost
		h.lines = append(h.lines, hunkLine{op: ' ', text: line})
	case line[0] == ' ' || line[0] == '-' || line[0] == '+':
		h.lines = append(h.lines, hunkLine{op: line[0], text: line[1:]})
	default:
		return false
	}
	return true
}

// noNewline reads "\ No newline at end of file", which belongs to the line above.
func (p *parser) noNewline(h *hunk) {
	if p.more() && strings.HasPrefix(p.lines[p.at], `\ `) {
		h.lines[len(h.lines)-1].noEOL = true
		p.at++
	}
}

// boundary reports whether a hunk may end here.
func (p *parser) boundary() bool {
	line := p.lines[p.at]
	return p.boundaryHeader() || line == "" || line == "-- " || !strings.ContainsAny(line[:1], " +-\\")
}

func (p *parser) boundaryHeader() bool {
	line := p.lines[p.at]
	return strings.HasPrefix(line, "@@ -") || strings.HasPrefix(line, "diff --git ") || strings.HasPrefix(line, "Index: ") || p.atHeader()
}
