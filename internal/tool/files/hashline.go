package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"chorus/internal/pattern"
	"chorus/internal/text"
	"chorus/internal/tool"
)

// HashlineName is the tool that edits lines by number and hash. While it
// is offered, read shows each line with its hash.
const HashlineName = "hashline_edit"

type hashlineIn struct {
	Path  string         `json:"path" jsonschema:"the file"`
	Edits []hashlineEdit `json:"edits" jsonschema:"all are made, or none"`
}

type hashlineEdit struct {
	Op    string   `json:"op" jsonschema:"replace, append (after pos) or prepend (before pos)"`
	Pos   string   `json:"pos,omitempty" jsonschema:"a line as read shows it, number#hash; append and prepend without it: the end, the beginning"`
	End   string   `json:"end,omitempty" jsonschema:"replace: the last line of a range, number#hash"`
	Lines []string `json:"lines,omitempty" jsonschema:"the new lines, without numbers and hashes; replace without lines deletes"`
}

// HashlineEdit returns the hashline_edit tool. It has the rights of edit.
func HashlineEdit(r *Roots) tool.Tool {
	return tool.New(tool.Func[hashlineIn]{
		Name: HashlineName, Description: hashlineProse, Risk: tool.Medium,
		Aliases: hashlineAliases(),
		Access:  func(in hashlineIn) []tool.Access { return r.WriteAccess("edit", in.Path) },
		Label:   func(in hashlineIn) string { return "edit " + in.Path },
		Preview: func(_ context.Context, in hashlineIn) string { return r.preview(in.Path, in.next) },
		Run: func(ctx context.Context, in hashlineIn) (tool.Result, error) {
			d, content, err := r.change(ctx, "edit", in.Path, in.next)
			name := d.place.String()
			if errors.Is(err, errNoChange) {
				return tool.OK("Nothing changed: " + name + " has these lines already."), nil
			}
			if err != nil {
				return failQuoting(err)
			}
			text := fmt.Sprintf("Made %s in %s", text.Count(len(in.Edits), "edit"), name)
			text += "\n" + hashedChange(d.old, content) + warning(d.place, content)
			res := tool.From(source(d.place), tool.Clip(ctx, text, tool.Head, nil))
			res.Changed, res.Diff = []string{name}, diff(d, name, content, true)
			return res, nil
		},
	})
}

// errNoChange means that the edits would change nothing, so nothing is written.
var errNoChange = errors.New("the edits change nothing")

func (in hashlineIn) next(d draft) (string, error) {
	if !d.exists {
		return "", tool.Mistake(d.place.String() + " does not exist. Use write for a new file.")
	}
	content, err := hashlineApply(d.old, in.Edits)
	if err != nil {
		return "", tool.Mistake(d.place.String() + ": " + err.Error())
	}
	if content == d.old {
		return "", errNoChange
	}
	return content, nil
}

// bom may precede a file's first line. It belongs to no line.
const bom = "\uFEFF"

// hashedLine is a line with its own line ending, which is "" for an unterminated last line.
type hashedLine struct{ text, end string }

func splitLines(content string) []hashedLine {
	var out []hashedLine
	for line := range strings.SplitAfterSeq(content, "\n") {
		text := strings.TrimSuffix(line, "\n")
		bare := strings.TrimSuffix(text, "\r")
		if line == "" {
			continue
		}
		if text == line {
			bare = text // without a line ending, a carriage return belongs to the line
		}
		out = append(out, hashedLine{bare, line[len(bare):]})
	}
	return out
}

// span is an edit in terms of lines: it replaces the lines from first up to, but not including, before.
type span struct {
	first, before int
	lines         []string
	edit          int
}

// hashlineApply implements hashline_edit without files. It checks every
// line that the edits name before it changes anything.
func hashlineApply(content string, edits []hashlineEdit) (string, error) {
	mark := ""
	if rest, ok := strings.CutPrefix(content, bom); ok {
		mark, content = bom, rest
	}
	lines := splitLines(content)
	spans, err := spansOf(lines, edits)
	if err != nil {
		return "", err
	}
	end := "\n"
	if len(lines) > 0 && lines[0].end == "\r\n" {
		end = "\r\n"
	}
	unfinished := len(lines) > 0 && lines[len(lines)-1].end == ""
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Or(a.first-b.first, a.before-b.before) })
	var out []hashedLine
	at := 0
	for _, s := range spans {
		out = append(out, lines[at:s.first]...)
		for _, text := range s.lines {
			out = append(out, hashedLine{text, ""})
		}
		at = s.before
	}
	out = append(out, lines[at:]...)
	var b strings.Builder
	b.WriteString(mark)
	for i, l := range out {
		// If the file had no final newline, a new last line has none either.
		if l.end == "" && !(unfinished && i == len(out)-1 && l.text != "") {
			l.end = end
		}
		b.WriteString(l.text)
		b.WriteString(l.end)
	}
	return b.String(), nil
}

// spansOf checks all edits and returns which lines they replace. Insertions replace none.
func spansOf(lines []hashedLine, edits []hashlineEdit) ([]span, error) {
	if len(edits) == 0 {
		return nil, tool.Mistake("there are no edits.")
	}
	var spans []span
	var seen []hashlineEdit
	var stale []int
	for i, e := range edits {
		same := func(o hashlineEdit) bool {
			return o.Op == e.Op && o.Pos == e.Pos && o.End == e.End && slices.Equal(o.Lines, e.Lines)
		}
		if slices.ContainsFunc(seen, same) {
			continue // a duplicate
		}
		seen = append(seen, e)
		s, wrong, err := spanOf(lines, e)
		if err != nil {
			return nil, tool.Mistake(fmt.Sprintf("edit %d: %s", i+1, err))
		}
		s.edit, stale = i+1, append(stale, wrong...)
		spans = append(spans, s)
	}
	if len(stale) > 0 {
		return nil, tool.Mistake(staleText(lines, stale))
	}
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if overlap(a, b) {
				return nil, tool.Mistake(fmt.Sprintf("edits %d and %d are about the same lines: make one of them.", a.edit, b.edit))
			}
		}
	}
	return spans, nil
}

// overlap reports whether two ranges share a line, or an insertion lies inside a range.
// Several insertions at one place are allowed and follow each other.
func overlap(a, b span) bool {
	if a.first == a.before && b.first == b.before {
		return false
	}
	if a.first == a.before || b.first == b.before {
		return a.first < b.before && b.first < a.before
	}
	return max(a.first, b.first) < min(a.before, b.before)
}

// spanOf reads one edit. stale are the lines, counted from 0, whose hash differs from the given one.
func spanOf(lines []hashedLine, e hashlineEdit) (s span, stale []int, err error) {
	if !slices.Contains([]string{"replace", "append", "prepend"}, e.Op) {
		return s, nil, tool.Mistake(fmt.Sprintf("unknown op %q; there are replace, append and prepend.", e.Op))
	}
	s.lines = plainLines(e.Lines)
	if e.Op != "replace" && len(s.lines) == 0 {
		return s, nil, tool.Mistake(e.Op + " needs lines.")
	}
	if e.End != "" && e.Op != "replace" {
		return s, nil, tool.Mistake("only replace has an end.")
	}
	if e.Pos == "" && e.Op != "replace" {
		if e.Op == "append" {
			s.first, s.before = len(lines), len(lines)
		}
		return s, nil, nil
	}
	find := func(ref string) (int, error) {
		at, hash, err := lineRef(ref)
		if err == nil && at >= len(lines) {
			err = tool.Mistake(fmt.Sprintf("there is no line %d; the file has %d.", at+1, len(lines)))
		}
		if err == nil && lineHash(lines[at].text, at+1) != hash {
			stale = append(stale, at)
		}
		return at, err
	}
	at, err := find(e.Pos)
	if err != nil {
		return s, nil, err
	}
	switch e.Op {
	case "append":
		s.first, s.before = at+1, at+1
	case "prepend":
		s.first, s.before = at, at
	case "replace":
		s.first, s.before = at, at+1
		if e.End != "" {
			last, err := find(e.End)
			if err != nil {
				return s, nil, err
			}
			if last < at {
				return s, nil, tool.Mistake(fmt.Sprintf("end (line %d) is before pos (line %d).", last+1, at+1))
			}
			s.before = last + 1
		}
	}
	return s, stale, nil
}

var (
	refForm    = pattern.Lazy(`^\s*(?:>>>|[+|-])?\s*(\d{1,9})\s*#\s*([` + hashLetters + `]{2})(?:\|.*)?\s*$`)
	prefixForm = pattern.Lazy(`^\s*(?:>>>\s*)?\d{1,9}#[` + hashLetters + `]{2}\|`)
)

// lineRef parses number#hash, also with the text that read shows around it. The returned line counts from 0.
func lineRef(ref string) (at int, hash string, err error) {
	m := refForm().FindStringSubmatch(ref)
	if m == nil {
		return 0, "", tool.Mistake(fmt.Sprintf("%q is not a line: write number#hash as read shows it, such as 12#%s.", ref, lineHash("hello world", 1)))
	}
	n, _ := strconv.Atoi(m[1])
	if n == 0 {
		return 0, "", tool.Mistake("lines count from 1.")
	}
	return n - 1, m[2], nil
}

// plainLines removes the numbers and hashes of read from new lines, because models copy
// them along. It does so if at least half of the lines have them.
func plainLines(given []string) []string {
	var out []string
	for _, l := range given {
		out = append(out, strings.Split(strings.ReplaceAll(l, "\r\n", "\n"), "\n")...)
	}
	with, words := 0, 0
	for _, l := range out {
		if strings.TrimSpace(l) != "" {
			words++
		}
		if prefixForm().MatchString(l) {
			with++
		}
	}
	if with == 0 || with*2 < words {
		return out
	}
	for i, l := range out {
		out[i] = l[len(prefixForm().FindString(l)):]
	}
	return out
}

// staleText shows the lines whose given hash is wrong, marked, with two lines around each.
func staleText(lines []hashedLine, stale []int) string {
	var out strings.Builder
	out.WriteString("the file has changed since it was read, so nothing was edited. The lines that were named are now (marked >>>):\n")
	shown := -1
	slices.Sort(stale)
	for at := range lines {
		near := slices.ContainsFunc(stale, func(s int) bool { return at >= s-2 && at <= s+2 })
		if !near {
			continue
		}
		if shown >= 0 && shown != at-1 {
			out.WriteString("    …\n")
		}
		shown = at
		mark := "    "
		if slices.Contains(stale, at) {
			mark = ">>> "
		}
		out.WriteString(mark + hashed(at+1, lines[at].text) + "\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// hashedChange shows the part of a file that changed, with two lines around it.
func hashedChange(old, content string) string {
	before, after := splitLines(strings.TrimPrefix(old, bom)), splitLines(strings.TrimPrefix(content, bom))
	first := 0
	for first < min(len(before), len(after)) && before[first] == after[first] {
		first++
	}
	last := 0
	for last < min(len(before), len(after))-first && before[len(before)-1-last] == after[len(after)-1-last] {
		last++
	}
	var out []string
	for at := max(first-2, 0); at < min(len(after)-last+2, len(after)); at++ {
		out = append(out, hashed(at+1, after[at].text))
	}
	return strings.Join(out, "\n")
}

// hashed formats a line as read shows it while the tool is offered.
func hashed(n int, text string) string {
	hash := lineHash(text, n)
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "…"
	}
	return fmt.Sprintf("%d#%s|%s", n, hash, strings.ToValidUTF8(text, "\uFFFD"))
}

// hashLetters are the sixteen digits of a hash, chosen so that no hash looks like a word or a number.
const hashLetters = "ZPMQVRWSNKTXJBYH"

// lineHash returns the short hash of line n. It ignores trailing white space. The hash of a line
// without letters or digits, such as a lone brace, also depends on its position.
func lineHash(text string, n int) string {
	text = strings.TrimRightFunc(strings.TrimSuffix(text, "\r"), unicode.IsSpace)
	seed := uint32(n)
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		seed = 0
	}
	h := xxh32(text, seed) % 256
	return string([]byte{hashLetters[h>>4], hashLetters[h&15]})
}
