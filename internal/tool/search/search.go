// Package search finds text in files. It promises the same matches in the same order, by path
// and line, with or without ripgrep. Ripgrep only determines which files cannot match; every
// line that is shown was read through the roots and matched here.
package search

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"chorus/internal/tool"
	"chorus/internal/tool/files"
)

//go:embed search_files.md
var prose string

// The limits of a search.
const (
	defaultResults = 50
	maxResults     = 500
	maxContext     = 20
	maxShown       = 400 // bytes shown of one line
)

type input struct {
	Query         string   `json:"query" jsonschema:"regular expression"`
	Path          string   `json:"path,omitempty" jsonschema:"file or directory to search; the workspace when left out"`
	Include       []string `json:"include,omitempty" jsonschema:"globs of files to search, like *.go"`
	Exclude       []string `json:"exclude,omitempty" jsonschema:"globs of files or directories to leave out"`
	MaxResults    int      `json:"max_results,omitempty" jsonschema:"default 50, at most 500"`
	ContextLines  int      `json:"context_lines,omitempty" jsonschema:"lines to show around a match, default 0"`
	CaseSensitive bool     `json:"case_sensitive,omitempty" jsonschema:"default false"`
}

// Options say how to search.
type Options struct {
	// Ripgrep is the path of rg. "" looks for it in PATH at the first search, "-" disables it.
	Ripgrep string
}

type searcher struct {
	roots *files.Roots
	rg    func() string
}

// New returns the search_files tool on the roots.
func New(roots *files.Roots, opts Options) tool.Tool {
	s := &searcher{roots: roots, rg: ripgrep(opts.Ripgrep)}
	return tool.New(tool.Func[input]{
		Name: "search_files", Description: prose, ReadOnly: true, Risk: tool.Low,
		Aliases: []tool.Alias{tool.Renamed("SearchText", map[string]string{
			"includeGlobs": "include", "excludeGlobs": "exclude", "maxResults": "max_results",
			"contextLines": "context_lines", "caseSensitive": "case_sensitive",
		})},
		Access: func(in input) []tool.Access { return roots.AccessDir("search_files", in.Path) },
		Label:  func(in input) string { return fmt.Sprintf("search %q", in.Query) },
		Run:    s.run,
	})
}

func (s *searcher) run(ctx context.Context, in input) (tool.Result, error) {
	text, err := s.search(ctx, in)
	if err != nil {
		return tool.Answer(err)
	}
	if strings.HasPrefix(text, tool.NoMatches) {
		return tool.OK(text), nil
	}
	return tool.From("lines of files", tool.Clip(ctx, text, tool.Head, nil)), nil
}

// query is a parsed search.
type query struct {
	expr     *regexp.Regexp
	literal  literal
	place    files.Place
	include  []files.Glob
	exclude  []files.Glob
	results  int
	surround int
	hides    bool // rules hide some files
	hidden   int  // how many of those were met
}

func (s *searcher) understand(in input) (query, error) {
	q := query{results: defaultResults, surround: min(max(in.ContextLines, 0), maxContext)}
	if in.Query == "" {
		return q, tool.Mistake("The query is empty.")
	}
	pattern := in.Query
	if !in.CaseSensitive {
		pattern = "(?i)" + pattern
	}
	var err error
	if q.expr, err = regexp.Compile(pattern); err != nil {
		return q, tool.Mistake("The query is not a regular expression: " + strings.Replace(err.Error(), "(?i)", "", 1) + ". Escape special characters with a backslash.")
	}
	q.literal = required(pattern)
	if q.place, err = s.roots.FindDir(in.Path); err != nil {
		return q, err
	}
	if in.MaxResults > 0 {
		q.results = min(in.MaxResults, maxResults)
	}
	for _, list := range []struct {
		from []string
		to   *[]files.Glob
	}{{in.Include, &q.include}, {in.Exclude, &q.exclude}} {
		for _, pattern := range list.from {
			glob, ok := files.NewGlob(pattern)
			if !ok {
				return q, tool.Mistake(fmt.Sprintf("%q is not a glob.", pattern))
			}
			*list.to = append(*list.to, glob)
		}
	}
	return q, nil
}

// wants reports whether a file is to be searched, judging by its path.
func (q *query) wants(e files.Entry) bool {
	if e.Link {
		return false
	}
	for _, glob := range q.exclude {
		if glob.Covers(e.Rel) {
			return false
		}
	}
	for _, glob := range q.include {
		if glob.Match(e.Rel) {
			return true
		}
	}
	return len(q.include) == 0
}

// search walks in order, in growing batches: a common word is found in the first
// batch, and for a rare word a long list is worth a ripgrep process.
func (s *searcher) search(ctx context.Context, in input) (string, error) {
	q, err := s.understand(in)
	if err != nil {
		return "", err
	}
	var (
		found []match
		batch []files.Entry
		size  = 64
		fail  error
	)
	flush := func() bool {
		var more []match
		more, fail = s.batch(ctx, &q, batch, q.results+1-len(found))
		found = append(found, more...)
		batch, size = batch[:0], min(size*4, 4096)
		return fail == nil && len(found) <= q.results
	}
	hider := s.roots.Hider(ctx)
	q.hides = hider.Any()
	err = s.roots.Walk(ctx, q.place, func(e files.Entry) bool {
		if !q.wants(e) {
			return true
		}
		if hider.Hides(e) {
			q.hidden++
			return true
		}
		batch = append(batch, e)
		return len(batch) < size || flush()
	})
	if err == nil && fail == nil && len(batch) > 0 && len(found) <= q.results {
		flush()
	}
	if err := errors.Join(err, fail); err != nil {
		return "", err
	}
	return render(&q, found), nil
}

func render(q *query, found []match) string {
	left := ""
	if q.hidden > 0 {
		left = fmt.Sprintf("\n[Left out because a rule keeps them from being read unasked: %d.]", q.hidden)
	}
	if len(found) == 0 {
		return tool.NoMatches + left
	}
	more := len(found) > q.results
	found = found[:min(len(found), q.results)]
	var out strings.Builder
	for i, m := range found {
		if i > 0 && q.surround > 0 {
			out.WriteString("--\n")
		}
		for j, line := range m.lines {
			mark := "-"
			if m.first+j == m.line {
				mark = ":"
			}
			fmt.Fprintf(&out, "%s%s%d%s%s\n", m.name, mark, m.first+j, mark, line)
		}
	}
	if more {
		fmt.Fprintf(&out, "[Only the first %d matches are shown; narrow the query or the path.]", len(found))
	}
	return strings.TrimSuffix(out.String(), "\n") + left
}
