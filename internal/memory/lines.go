package memory

import (
	"fmt"
	"strings"
)

// Span says that a number of consecutive lines belong to one version.
type Span struct {
	Version int64
	Lines   int
}

// Spans say to which version each line of a text belongs.
type Spans []Span

// String returns the stored form of spans: "3*12 7*1".
func (s Spans) String() string {
	var out strings.Builder
	for i, span := range s {
		if i > 0 {
			out.WriteByte(' ')
		}
		fmt.Fprintf(&out, "%d*%d", span.Version, span.Lines)
	}
	return out.String()
}

// ParseSpans parses what String returns.
func ParseSpans(text string) (Spans, error) {
	var out Spans
	for word := range strings.FieldsSeq(text) {
		var s Span
		if _, err := fmt.Sscanf(word, "%d*%d", &s.Version, &s.Lines); err != nil || s.Lines <= 0 {
			return nil, fmt.Errorf("%q does not say of which version lines are", word)
		}
		out = append(out, s)
	}
	return out, nil
}

func (s Spans) add(version int64) Spans {
	if n := len(s); n > 0 && s[n-1].Version == version {
		s[n-1].Lines++
		return s
	}
	return append(s, Span{version, 1})
}

// each returns the version of each line. Lines beyond the spans have version 0.
func (s Spans) each(lines int) []int64 {
	out := make([]int64, 0, lines)
	for _, span := range s {
		for range span.Lines {
			if len(out) < lines {
				out = append(out, span.Version)
			}
		}
	}
	for len(out) < lines {
		out = append(out, 0)
	}
	return out
}

// Lines splits a text into lines, without an empty one after the last newline.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// Attribute determines to which version each line of a new text belongs: lines that existed before remain
// those of whoever wrote them, wherever they are now, and the others belong to the new version.
func Attribute(before string, spans Spans, after string, version int64) Spans {
	old := Lines(before)
	versions := spans.each(len(old))
	left := map[string][]int64{}
	for i, line := range old {
		left[line] = append(left[line], versions[i])
	}
	var out Spans
	for _, line := range Lines(after) {
		if known := left[line]; len(known) > 0 {
			out = out.add(known[0])
			left[line] = known[1:]
			continue
		}
		out = out.add(version)
	}
	return out
}
