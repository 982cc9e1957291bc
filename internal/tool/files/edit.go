package files

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"chorus/internal/tool"
)

type editIn struct {
	Path       string `json:"path" jsonschema:"the file"`
	OldString  string `json:"old_string" jsonschema:"text to replace"`
	NewString  string `json:"new_string" jsonschema:"text to put there"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence"`
}

// Edit returns the edit tool.
func Edit(r *Roots) tool.Tool {
	return tool.New(tool.Func[editIn]{
		Name: "edit", Description: editProse, Risk: tool.Medium,
		Aliases: editAliases(),
		Access:  func(in editIn) []tool.Access { return r.WriteAccess("edit", in.Path) },
		Label:   func(in editIn) string { return "edit " + in.Path },
		Preview: func(_ context.Context, in editIn) string {
			return r.preview(in.Path, func(d draft) (string, error) {
				made, err := in.next(d)
				return made.content, err
			})
		},
		Run: func(ctx context.Context, in editIn) (tool.Result, error) {
			var made edited
			d, _, err := r.change(ctx, "edit", in.Path, func(d draft) (content string, err error) {
				made, err = in.next(d)
				return made.content, err
			})
			if err != nil {
				return tool.Answer(err)
			}
			name := d.place.String()
			text := fmt.Sprintf("Replaced at line %d in %s", made.line, name)
			if in.ReplaceAll && made.count > 1 {
				text = fmt.Sprintf("Replaced %d occurrences in %s", made.count, name)
			}
			text += "\n" + made.snippet() + warning(d.place, made.content)
			res := tool.From(source(d.place), tool.Clip(ctx, text, tool.Head, nil)) // the lines around it come from the file
			res.Changed, res.Diff = []string{name}, diff(d, name, made.content, true)
			return res, nil
		},
	})
}

// edited is a text after its replacements.
type edited struct {
	content string
	count   int
	line    int // line of the first replacement
	lines   int // number of its lines
}

func (in editIn) next(d draft) (edited, error) {
	if !d.exists {
		return edited{}, tool.Mistake(d.place.String() + " does not exist.")
	}
	made, err := replace(d.old, in.OldString, in.NewString, in.ReplaceAll)
	if err != nil {
		return edited{}, tool.Mistake(d.place.String() + ": " + err.Error())
	}
	return made, nil
}

// replace implements edit without files. The file's line endings are kept: text given
// with bare newlines matches a file with CRLF, and vice versa.
func replace(content, from, to string, all bool) (edited, error) {
	switch from {
	case "":
		return edited{}, tool.Mistake("old_string is empty. Use write for a new file.")
	case to:
		return edited{}, tool.Mistake("old_string and new_string are identical: nothing would change.")
	}
	crlf := strings.Contains(content, "\r\n")
	count := strings.Count(content, from)
	converted := count == 0 && from != endings(from, crlf)
	if converted {
		from = endings(from, crlf)
		count = strings.Count(content, from)
	}
	if converted || crlf && strings.Count(content, "\r\n") == strings.Count(content, "\n") {
		to = endings(to, crlf)
	}
	switch {
	case count == 0:
		return edited{}, tool.Mistake("old_string was not found." + hint(content, from))
	case count > 1 && !all:
		return edited{}, tool.Mistake(fmt.Sprintf("old_string appears %d times (lines %s). Give more of the text around it so that it is unique, or set replace_all.", count, where(content, from)))
	case from == to:
		return edited{}, tool.Mistake("old_string and new_string are identical: nothing would change.")
	}
	at := strings.Index(content, from)
	return edited{
		content: strings.ReplaceAll(content, from, to),
		count:   count,
		line:    strings.Count(content[:at], "\n") + 1,
		lines:   strings.Count(to, "\n") + 1,
	}, nil
}

// endings converts all line endings to CRLF or to bare newlines.
func endings(text string, crlf bool) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// where lists the lines of the first occurrences.
func where(content, from string) string {
	var lines []string
	for at := 0; len(lines) < 5; {
		i := strings.Index(content[at:], from)
		if i < 0 {
			return strings.Join(lines, ", ")
		}
		lines = append(lines, fmt.Sprint(strings.Count(content[:at+i], "\n")+1))
		at += i + len(from)
	}
	return strings.Join(lines, ", ") + ", …"
}

// hint names the two usual reasons why a text is not found.
func hint(content, from string) string {
	if regexp.MustCompile(`(?m)^ *\d+\t`).MatchString(from) {
		return " Leave out the line numbers that read shows."
	}
	want := squeeze(from)
	if want == "" {
		return ""
	}
	first, _, _ := strings.Cut(want, "\n")
	for i, line := range strings.Split(content, "\n") {
		if squeeze(line) == first {
			return fmt.Sprintf(" Line %d differs from its first line in white space only, if at all: read the file again.", i+1)
		}
	}
	return " Read the file again: it may have changed."
}

// squeeze reduces the white space in every line to single spaces.
func squeeze(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

// snippet returns the first replacement with three lines around it, numbered.
func (e edited) snippet() string {
	lines := strings.Split(e.content, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	first := max(e.line-3, 1)
	last := min(e.line+e.lines-1+3, len(lines))
	var out strings.Builder
	for n := first; n <= last; n++ {
		text := strings.ToValidUTF8(strings.TrimSuffix(lines[n-1], "\r"), "\uFFFD")
		if len(text) > maxLine {
			text = strings.ToValidUTF8(text[:maxLine], "") + "…"
		}
		fmt.Fprintf(&out, "%6d\t%s\n", n, text)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
