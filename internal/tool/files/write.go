package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"chorus/internal/tool"
)

type writeIn struct {
	Path      string `json:"path" jsonschema:"the file"`
	Content   string `json:"content" jsonschema:"its whole new text"`
	Append    bool   `json:"append,omitempty" jsonschema:"add to the end instead"`
	Overwrite *bool  `json:"overwrite,omitempty" jsonschema:"false: fail if the file exists"`
}

// Write returns the write tool.
func Write(r *Roots) tool.Tool {
	return tool.New(tool.Func[writeIn]{
		Name: "write", Description: writeProse, Risk: tool.Medium,
		Aliases: writeAliases(),
		Access:  func(in writeIn) []tool.Access { return r.WriteAccess("write", in.Path) },
		Label:   func(in writeIn) string { return "write " + in.Path },
		Preview: func(_ context.Context, in writeIn) string { return r.preview(in.Path, in.next) },
		Run: func(ctx context.Context, in writeIn) (tool.Result, error) {
			d, content, err := r.change(ctx, "write", in.Path, in.next)
			if err != nil {
				return tool.Answer(err)
			}
			name := d.place.String()
			text := fmt.Sprintf("Wrote %d bytes to %s", len(in.Content), name)
			if in.Append {
				text = fmt.Sprintf("Appended %d bytes to %s", len(in.Content), name)
			}
			res := tool.OK(text + warning(d.place, content))
			res.Changed, res.Diff = []string{name}, diff(d, name, content, true)
			return res, nil
		},
	})
}

// next returns the text that the file will have.
func (in writeIn) next(d draft) (string, error) {
	if d.exists && !in.Append && in.Overwrite != nil && !*in.Overwrite {
		return "", tool.Mistake(d.place.String() + " exists already; set overwrite to replace it.")
	}
	if in.Append {
		return d.old + in.Content, nil
	}
	return in.Content, nil
}

// preview returns the diff that a change would make, or "" if it would fail or change nothing.
func (r *Roots) preview(name string, next func(draft) (string, error)) string {
	place, err := r.Find(name)
	if err != nil {
		return ""
	}
	d, err := r.target(place)
	if err != nil {
		return ""
	}
	if d, err = r.load(d); err != nil {
		return ""
	}
	content, err := next(d)
	if err != nil {
		return ""
	}
	return diff(d, place.String(), content, true)
}

// diff shows one file's change for people. exists distinguishes a file
// that will exist from one that will be removed.
func diff(d draft, to, content string, exists bool) string {
	from := "a/" + d.place.String()
	to = "b/" + to
	if !d.exists {
		from = "/dev/null"
	}
	if !exists {
		to = "/dev/null"
	}
	switch {
	case len(d.old)+len(content) > 1<<20:
		return fmt.Sprintf("--- %s\n+++ %s\n(%d bytes become %d, too many to show)\n", from, to, len(d.old), len(content))
	case strings.ContainsRune(d.old, 0) || strings.ContainsRune(content, 0):
		return fmt.Sprintf("--- %s\n+++ %s\n(binary: %d bytes become %d)\n", from, to, len(d.old), len(content))
	}
	text := udiff.Unified(from, to, strings.ToValidUTF8(d.old, "\uFFFD"), strings.ToValidUTF8(content, "\uFFFD"))
	return tool.Clip(context.Background(), text, tool.Head, nil)
}

// Unified returns the change of a text as a unified diff for people.
func Unified(name, old, content string) string {
	return tool.Clip(context.Background(), udiff.Unified("a/"+name, "b/"+name, old, content), tool.Head, nil)
}

// UnifiedWhole returns the whole difference of two texts, however long, for people who must see all of it.
func UnifiedWhole(name, old, content string) string {
	return udiff.Unified("a/"+name, "b/"+name, old, content)
}

// warning warns about a file that programs of its type will reject. It is only
// a warning, because the model may be halfway through.
func warning(place Place, content string) string {
	if path.Ext(place.Path) != ".json" {
		return ""
	}
	var value any
	err := json.Unmarshal([]byte(strings.TrimPrefix(content, "\uFEFF")), &value)
	if err == nil {
		return ""
	}
	line := ""
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		before := []byte(content)[:min(int(syntax.Offset), len(content))]
		line = fmt.Sprintf(" (line %d)", bytes.Count(before, []byte("\n"))+1)
	}
	return fmt.Sprintf("\nWarning: %s is not valid JSON: %s%s", place, err, line)
}
