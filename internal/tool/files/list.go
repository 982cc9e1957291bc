package files

import (
	"context"
	"fmt"
	"strings"

	"chorus/internal/tool"
)

// maxListed is how many files list_files names at most.
const maxListed = 500

const noFiles = "No files found."

type listIn struct {
	Glob  string `json:"glob,omitempty" jsonschema:"which files, like *.go or src/**/*.ts; all when left out"`
	Path  string `json:"path,omitempty" jsonschema:"directory to begin in; the workspace when left out"`
	Limit int    `json:"limit,omitempty" jsonschema:"at most so many, default and maximum 500"`
}

// ListFiles returns the list_files tool.
func ListFiles(r *Roots) tool.Tool {
	return tool.New(tool.Func[listIn]{
		Name: "list_files", Description: listProse, ReadOnly: true, Risk: tool.Low,
		Aliases: listAliases(),
		Access:  func(in listIn) []tool.Access { return r.AccessDir("list_files", in.Path) },
		Label: func(in listIn) string {
			return strings.Join(strings.Fields("list "+in.Glob+" "+in.Path), " ")
		},
		Run: func(ctx context.Context, in listIn) (tool.Result, error) {
			text, err := r.list(ctx, in)
			if err != nil {
				return tool.Answer(err)
			}
			if text == noFiles {
				return tool.OK(text), nil
			}
			return tool.From("names of files", tool.Clip(ctx, text, tool.Head, nil)), nil
		},
	})
}

func (r *Roots) list(ctx context.Context, in listIn) (string, error) {
	place, err := r.FindDir(in.Path)
	if err != nil {
		return "", err
	}
	glob, ok := Glob{}, true
	if in.Glob != "" {
		if glob, ok = NewGlob(in.Glob); !ok {
			return "", tool.Mistake(fmt.Sprintf("%q is not a glob.", in.Glob))
		}
	}
	limit := maxListed
	if in.Limit > 0 {
		limit = min(in.Limit, maxListed)
	}
	var found []string
	hider := r.Hider(ctx)
	err = r.Walk(ctx, place, func(e Entry) bool {
		if (in.Glob == "" || glob.Match(e.Rel)) && !hider.Hides(e) {
			found = append(found, e.Place.String())
		}
		return len(found) <= limit
	})
	if err != nil {
		return "", err
	}
	switch {
	case len(found) == 0:
		return noFiles, nil
	case len(found) > limit:
		return strings.Join(found[:limit], "\n") + fmt.Sprintf("\n[Only the first %d files are shown; narrow the glob or the path.]", limit), nil
	}
	return strings.Join(found, "\n"), nil
}
