package service

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/tool/files"
)

// Limits of searching a folder while somebody types a name.
const (
	fileLookTime = 500 * time.Millisecond
	fileLookMost = 50_000
)

// SessionFiles implements the operation of that name. Files whose name starts with the search text come first.
func (o *Handler) SessionFiles(ctx context.Context, by operation.Caller, in operations.SessionFileQuery) (operation.List[operations.SessionFile], error) {
	out := operation.List[operations.SessionFile]{Items: []operations.SessionFile{}}
	row, err := o.Find(ctx, by, in.ID)
	if err != nil || row.Dir == "" {
		return out, err
	}
	if err := o.MayWork(by, row); err != nil {
		return out, err
	}
	found, err := FindFiles(ctx, row.Dir, in.Match, operation.Limit(in.Limit, 20, 200))
	for _, path := range found {
		out.Items = append(out.Items, operations.SessionFile{Path: path})
	}
	return out, err
}

// FilesFor finds files in the folder that a new session would get, up to a limit.
func (o *Handler) FilesFor(ctx context.Context, by operation.Caller, in operations.NewSession, match string, most int) ([]string, error) {
	thread, err := newThread(by, "new", in.Agent)
	if err != nil {
		return nil, err
	}
	dir, err := o.Workplace(by, in, thread)
	if err != nil {
		return nil, err
	}
	if err := o.MayWork(by, journal.Thread{ID: thread, Dir: dir}); err != nil {
		return nil, err
	}
	return FindFiles(ctx, dir, match, most)
}

// FindFiles finds files of a folder by letters of their paths, the best ones first, up to a limit. A missing folder has none.
func FindFiles(ctx context.Context, dir, match string, most int) ([]string, error) {
	roots, err := files.NewRoots(dir)
	if err != nil {
		return nil, err
	}
	defer roots.Close()
	top, err := roots.FindDir("")
	if err != nil {
		return nil, nil // the folder was removed, or is on another machine
	}
	look, cancel := context.WithTimeout(ctx, fileLookTime)
	defer cancel()
	type found struct {
		path string
		rank int
	}
	var list []found
	seen := 0
	err = roots.Walk(look, top, func(e files.Entry) bool {
		if rank, ok := fileRank(e.Rel, match); ok && !e.Link {
			list = append(list, found{e.Rel, rank})
		}
		seen++
		return seen < fileLookMost
	})
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.path), len(b.path)), strings.Compare(a.path, b.path))
	})
	var out []string
	for _, f := range list[:min(len(list), most)] {
		out = append(out, f.path)
	}
	return out, nil
}

// fileRank says how well a path matches the typed text, lower is better; false: it does not contain all letters in order.
func fileRank(path, typed string) (int, bool) {
	low, want := strings.ToLower(path), strings.ToLower(typed)
	base := low[strings.LastIndexByte(low, '/')+1:]
	switch {
	case strings.HasPrefix(base, want):
		return 0, true
	case strings.HasPrefix(low, want):
		return 1, true
	case strings.Contains(base, want):
		return 2, true
	case strings.Contains(low, want):
		return 3, true
	}
	rest := low
	for _, r := range want {
		at := strings.IndexRune(rest, r)
		if at < 0 {
			return 0, false
		}
		rest = rest[at+len(string(r)):]
	}
	return 4, true
}
