// Package remember has the tools with which an agent stores something
// for later conversations and finds it again.
//
// Remembering writes to a memory file. It passes the gate like write, and is refused
// if the file would become longer than what is shown of it.
package remember

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"chorus/internal/memory"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
)

//go:embed remember.md
var rememberProse string

//go:embed recall.md
var recallProse string

type input struct {
	Text  string `json:"text" jsonschema:"the fact"`
	Scope string `json:"scope,omitempty" jsonschema:"default channel"`
}

// file returns the memory file of a scope, as file tools name it.
func (in input) file() string {
	return memory.File{Path: memory.Name, Scope: memory.Scope(cmp.Or(in.Scope, string(memory.Channel)))}.Tool()
}

// New returns the remember tool on roots that contain the memory files.
func New(roots *files.Roots) tool.Tool {
	return tool.New(tool.Func[input]{
		Name: "remember", Description: rememberProse, Risk: tool.Medium,
		Enum:   map[string][]string{"scope": {string(memory.Channel), string(memory.Transport), string(memory.Global)}},
		Access: func(in input) []tool.Access { return roots.WriteAccess("write", in.file()) },
		Label:  func(in input) string { return "remember: " + in.Text },
		Run: func(ctx context.Context, in input) (tool.Result, error) {
			if strings.TrimSpace(in.Text) == "" {
				return tool.Fail("Say what to remember."), nil
			}
			size := 0
			err := roots.Change(ctx, "write", in.file(), func(old string) (string, error) {
				text := memory.Append(old, in.Text)
				if size = len(text); size > memory.Shown {
					return "", tool.Mistake(fmt.Sprintf("%s is full: it has %d bytes, and %d are shown. Read it, remove what is no longer true, and try again.", in.file(), len(old), memory.Shown))
				}
				return text, nil
			})
			if err != nil {
				return tool.Answer(err)
			}
			text := "Remembered in " + in.file() + "."
			if size > memory.Full {
				text += fmt.Sprintf(" It has %d of the %d bytes that are shown: tidy it up soon.", size, memory.Shown)
			}
			res := tool.OK(text)
			res.Changed = []string{in.file()}
			return res, nil
		},
	})
}

// Hit is one place where words were found.
type Hit struct {
	Where string // a memory file, or a conversation
	Who   string
	At    time.Time
	Text  string
}

type query struct {
	Query string `json:"query" jsonschema:"words"`
	Limit int    `json:"limit,omitempty" jsonschema:"default 10"`
}

// maxHits is more than a model benefits from.
const maxHits = 50

// Recall returns the recall tool. search knows who asks, and returns only what they may read.
func Recall(search func(ctx context.Context, words string, limit int) ([]Hit, error)) tool.Tool {
	return tool.New(tool.Func[query]{
		Name: "recall", Description: recallProse, ReadOnly: true, Risk: tool.Low,
		Label: func(in query) string { return "recall: " + in.Query },
		Run: func(ctx context.Context, in query) (tool.Result, error) {
			if strings.TrimSpace(in.Query) == "" {
				return tool.Fail("Say what to look for."), nil
			}
			hits, err := search(ctx, in.Query, min(cmp.Or(max(in.Limit, 0), 10), maxHits))
			if err != nil {
				return tool.Result{}, err
			}
			if len(hits) == 0 {
				return tool.OK("Nothing was found."), nil
			}
			var out strings.Builder
			for _, h := range hits {
				fmt.Fprintf(&out, "%s, %s", h.Where, h.At.UTC().Format("2006-01-02 15:04"))
				if h.Who != "" {
					out.WriteString(", " + h.Who)
				}
				fmt.Fprintf(&out, ": %s\n", strings.Join(strings.Fields(h.Text), " "))
			}
			return tool.From("memory and past conversations", tool.Clip(ctx, strings.TrimSpace(out.String()), tool.Head, nil)), nil
		},
	})
}
