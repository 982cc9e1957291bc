package connector

import (
	"fmt"
	"testing"

	"chorus/internal/connector/slash"
	"chorus/internal/platform"
	"chorus/internal/room"
)

func TestCommandsAreReadFromText(t *testing.T) {
	t.Parallel()
	list := []platform.Command{{Name: "context", Sub: []platform.Command{{Name: "save", Description: "Keep it",
		Options: []platform.Option{{Name: "description", Required: true}, {Name: "all", Kind: platform.Flag}}}}}, {Name: "status", Description: "What runs"}}
	for text, want := range map[string]string{
		"status":                               "status map[] map[] ",
		"context save before the change":       "context/save map[description:before the change] map[] ",
		"context save description=a b all=yes": "context/save map[description:a b] map[all:true] ",
		"context save all=no description=x=y":  "context/save map[description:x=y] map[all:false] ",
		"context save two\n  lines":            "context/save map[description:two\n  lines] map[] ",
		"context save \"a b\" yes":             "context/save map[description:a b] map[all:true] ",
		"context save description=“a b” no":    "context/save map[description:a b] map[all:false] ",
		"context save say \"a b\" twice":       "context/save map[description:say \"a b\" twice] map[] ",
		"context save":                         "context/save map[] map[] /context save needs description: .",
		"status now":                           `status map[] map[] "now" is one value too many for /status.`,
		"context":                              "none",
		"context drop":                         "none",
		"statuses":                             "none",
	} {
		c, path, rest := slash.Find(list, text)
		got := "none"
		if c != nil {
			i := platform.Invocation{Path: path, Text: map[string]string{}, Flag: map[string]bool{}, Person: map[string]room.Author{}}
			wrong := slash.Read(&i, c.Options, rest)
			got = fmt.Sprint(path, " ", i.Text, " ", i.Flag, " ", wrong)
		}
		if got != want {
			t.Errorf("/%s is read as %s, not as %s", text, got, want)
		}
	}
}
