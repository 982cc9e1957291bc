// Package diffview parses unified diffs, as git writes them, and prepares them for a page: by file, with line numbers,
// unified or side by side.
package diffview

import (
	"strconv"
	"strings"
)

// Limits of what a page shows of a diff, in lines; more would slow the browser down. A link leads to the full diff.
const (
	maxFileLines = 1000
	maxDiffLines = 4000
	openFiles    = 20 // further files are folded
)

// File is the changes of a file.
type File struct {
	Path    string
	Note    string // such as "new file", "renamed from a.txt" or "binary"
	Added   int
	Removed int
	Hunks   []Hunk
	Hidden  int  // lines that are not shown
	Folded  bool // folded at first
	Shown   int  // lines that are shown
}

// Hunk is a run of lines.
type Hunk struct {
	Head  string
	Gap   bool // lines of the file before it are not shown
	Lines []Line
}

// Line is a line of a file. Old and New are its numbers before and after, 0 if it does not exist there.
type Line struct {
	Kind     string // same, add, del or note
	Old, New int
	Text     string
}

// Pair is a row of the side-by-side view; a side without a line has no kind.
type Pair struct{ Left, Right Line }

// Parse parses a unified diff as git writes it. It skips what it does not know; cut reports whether lines were left out.
func Parse(text string) (files []File, cut bool) {
	var file *File
	var left, right, shown int // lines of the hunk still to come, and lines kept
	var old, now int
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if left > 0 || right > 0 {
			if l, ok := hunkLine(line, &old, &now, &left, &right); ok {
				if keepLine(file, l, &shown) {
					continue
				}
				cut = true
				continue
			}
			left, right = 0, 0
		}
		switch {
		case strings.HasPrefix(line, "diff --git "):
			files = append(files, File{Path: gitPath(line), Folded: len(files) >= openFiles})
			file = &files[len(files)-1]
		case strings.HasPrefix(line, "--- ") && (file == nil || len(file.Hunks) > 0): // a diff without git's own header lines
			files = append(files, File{Path: headPath(line), Folded: len(files) >= openFiles})
			if file = &files[len(files)-1]; file.Path == "" {
				file.Note = "new file"
			}
		case file == nil:
		case strings.HasPrefix(line, "@@ "):
			var head string
			if old, left, now, right, head = hunkHead(line); left+right > 0 {
				file.Hunks = append(file.Hunks, Hunk{Head: head, Gap: old > 1 || now > 1})
			}
		case strings.HasPrefix(line, `\ `):
			keepLine(file, Line{Kind: "note", Text: "no newline at the end of the file"}, &shown)
		default:
			file.describe(line)
		}
	}
	return files, cut
}

// ParseWhole parses a diff of which all lines will be shown. It refuses a text with lines that are in no hunk and are no head of
// a file: they would not be seen.
func ParseWhole(text string) ([]File, bool) {
	files, cut := Parse(text)
	lines := 0
	for i, f := range files {
		files[i].Folded = false
		lines += 2 // its paths
		for _, h := range f.Hunks {
			lines += 1 + len(h.Lines)
		}
	}
	return files, !cut && lines > 0 && lines == strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1
}

// keepLine adds a line to the last hunk of a file, up to the limit.
func keepLine(file *File, l Line, shown *int) bool {
	switch l.Kind {
	case "add":
		file.Added++
	case "del":
		file.Removed++
	}
	if len(file.Hunks) == 0 {
		return true
	}
	if file.Shown >= maxFileLines || *shown >= maxDiffLines {
		file.Hidden++
		return false
	}
	*shown++
	file.Shown++
	h := &file.Hunks[len(file.Hunks)-1]
	h.Lines = append(h.Lines, l)
	return true
}

// describe applies a header line to a file.
func (f *File) describe(line string) {
	switch word, rest, _ := strings.Cut(line, " "); {
	case strings.HasPrefix(line, "new file"):
		f.Note = "new file"
	case strings.HasPrefix(line, "deleted file"):
		f.Note = "deleted"
	case word == "rename" && strings.HasPrefix(rest, "from "):
		f.Note = "renamed from " + unquote(rest[len("from "):])
	case word == "rename" && strings.HasPrefix(rest, "to "):
		f.Path = unquote(rest[len("to "):])
	case line == "+++ /dev/null" && f.Note == "":
		f.Note = "deleted"
	case word == "+++" && rest != "/dev/null":
		f.Path = strings.TrimPrefix(unquote(strings.TrimSuffix(rest, "\t")), "b/")
	case word == "Binary" || strings.HasPrefix(line, "GIT binary patch"):
		f.Note = strings.TrimPrefix(f.Note+", binary", ", ")
	}
}

// gitPath parses the path in the first line of a file's diff: "diff --git a/x b/x". If both sides are equal, it splits
// by length, because a path may contain anything; otherwise the following lines are more precise.
func gitPath(line string) string {
	rest := strings.TrimPrefix(line, "diff --git ")
	if strings.HasPrefix(rest, `"`) {
		return strings.TrimPrefix(unquote(rest), "a/")
	}
	if half := len(rest) / 2; len(rest)%2 == 1 && len(rest) > 4 && rest[half] == ' ' && rest[2:half] == rest[half+3:] {
		return rest[2:half]
	}
	return rest
}

// headPath returns the path in "--- a/x"; "": the file did not exist before.
func headPath(line string) string {
	name := unquote(strings.TrimSuffix(strings.TrimPrefix(line, "--- "), "\t"))
	if name == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(name, "a/")
}

// unquote parses a path that git has quoted.
func unquote(path string) string {
	if !strings.HasPrefix(path, `"`) {
		return path
	}
	quoted, err := strconv.QuotedPrefix(path)
	if err != nil {
		return path
	}
	if plain, err := strconv.Unquote(quoted); err == nil {
		return strings.ToValidUTF8(plain, "\uFFFD")
	}
	return path
}

// hunkHead parses "@@ -1,2 +3,4 @@ func x".
func hunkHead(line string) (old, left, now, right int, head string) {
	ranges, after, ok := strings.Cut(strings.TrimPrefix(line, "@@ "), " @@")
	before, behind, both := strings.Cut(ranges, " ")
	if !ok || !both || !strings.HasPrefix(before, "-") || !strings.HasPrefix(behind, "+") {
		return 0, 0, 0, 0, ""
	}
	old, left = lineRange(before[1:])
	now, right = lineRange(behind[1:])
	return old, left, now, right, strings.TrimSpace(after)
}

func lineRange(text string) (from, count int) {
	first, length, has := strings.Cut(text, ",")
	from, _ = strconv.Atoi(first)
	if count = 1; has {
		count, _ = strconv.Atoi(length)
	}
	return from, max(count, 0)
}

// hunkLine parses a line of a hunk; false: the hunk has ended.
func hunkLine(line string, old, now, left, right *int) (Line, bool) {
	if line == "" {
		line = " " // some tools drop the space of an empty line
	}
	l := Line{Text: line[1:]}
	switch line[0] {
	case '+':
		l.Kind, l.New = "add", *now
		*now, *right = *now+1, *right-1
	case '-':
		l.Kind, l.Old = "del", *old
		*old, *left = *old+1, *left-1
	case ' ':
		l.Kind, l.Old, l.New = "same", *old, *now
		*old, *now, *left, *right = *old+1, *now+1, *left-1, *right-1
	case '\\':
		l.Kind, l.Text = "note", "no newline at the end of the file"
	default:
		return l, false
	}
	return l, true
}

// SideBySide pairs the lines of a hunk: removed lines next to their replacements.
func SideBySide(h Hunk) []Pair {
	var out []Pair
	for i := 0; i < len(h.Lines); {
		l := h.Lines[i]
		if l.Kind != "add" && l.Kind != "del" {
			out = append(out, Pair{l, l})
			i++
			continue
		}
		var removed, added []Line
		for ; i < len(h.Lines) && h.Lines[i].Kind == "del"; i++ {
			removed = append(removed, h.Lines[i])
		}
		for ; i < len(h.Lines) && h.Lines[i].Kind == "add"; i++ {
			added = append(added, h.Lines[i])
		}
		for n := range max(len(removed), len(added)) {
			var pair Pair
			if n < len(removed) {
				pair.Left = removed[n]
			}
			if n < len(added) {
				pair.Right = added[n]
			}
			out = append(out, pair)
		}
	}
	return out
}
