// Package notes is the agent's own notebook: short texts by key that survive when a conversation is
// shortened. A notebook in a file is written in one step, and an unreadable one is set aside, never
// overwritten.
package notes

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"chorus/internal/tool"
)

//go:embed work_notes.md
var prose string

// Size limits of a notebook, which is shown to the model again and again.
const (
	maxKey   = 100
	maxValue = 16 << 10
	maxNotes = 200
)

// Note is one entry.
type Note struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Notebook stores notes. Implementations are safe for concurrent use. A notebook that could not
// be read counts as empty; the error then says where the old contents are.
type Notebook interface {
	Get(ctx context.Context, key string) (value string, ok bool, err error)
	Set(ctx context.Context, key, value string) error
	List(ctx context.Context) ([]Note, error) // sorted by key
	// Clear removes one note, or all if key is empty, and returns how many it removed.
	Clear(ctx context.Context, key string) (int, error)
}

type input struct {
	Action string `json:"action" jsonschema:"what to do"`
	Key    string `json:"key,omitempty" jsonschema:"for set and get; clear without one clears all"`
	Value  string `json:"value,omitempty" jsonschema:"for set"`
}

// New returns the work_notes tool on a notebook.
func New(book Notebook) tool.Tool {
	return tool.New(tool.Func[input]{
		Name: "work_notes", Description: prose, Risk: tool.Low,
		Enum:    map[string][]string{"action": {"set", "get", "list", "clear"}},
		Aliases: []tool.Alias{tool.Also("WorkNotes")},
		Label: func(in input) string {
			return strings.TrimSpace("notes: " + in.Action + " " + in.Key)
		},
		Run: func(ctx context.Context, in input) (tool.Result, error) {
			text, err := act(ctx, book, in)
			if err != nil {
				return tool.Fail(err.Error()), ctx.Err()
			}
			return tool.OK(tool.Clip(ctx, text, tool.Head, nil)), nil
		},
	})
}

func act(ctx context.Context, book Notebook, in input) (string, error) {
	key := strings.TrimSpace(in.Key)
	if key == "" && (in.Action == "set" || in.Action == "get") {
		return "", tool.Mistake(in.Action + " needs a key.")
	}
	switch in.Action {
	case "set":
		if len(key) > maxKey || len(in.Value) > maxValue {
			return "", tool.Mistake(fmt.Sprintf("A key may have %d bytes and a value %d; write longer texts to a file.", maxKey, maxValue))
		}
		return "Noted " + key + ".", book.Set(ctx, key, in.Value)
	case "get":
		value, ok, err := book.Get(ctx, key)
		if err == nil && !ok {
			value = "There is no note " + key + "."
		}
		return value, err
	case "clear":
		n, err := book.Clear(ctx, key)
		return fmt.Sprintf("Cleared %d notes.", n), err
	}
	all, err := book.List(ctx)
	if err != nil || len(all) == 0 {
		return "There are no notes.", err
	}
	var out strings.Builder
	for _, note := range all {
		fmt.Fprintf(&out, "%s: %s\n", note.Key, note.Value)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
