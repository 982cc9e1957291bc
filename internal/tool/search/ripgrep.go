package search

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp/syntax"
	"strings"
	"sync"
	"time"

	"chorus/internal/tool/files"
)

const (
	fewFiles   = 32               // for fewer, a process costs more than it saves
	minLiteral = 3                // a shorter literal is in every file
	maxArgs    = 96 << 10         // bytes of paths for one process, far below every system's limit
	rgTimeout  = 60 * time.Second // after that we search ourselves
)

// ripgrep finds rg once, on first use.
func ripgrep(given string) func() string {
	switch given {
	case "-":
		return func() string { return "" }
	case "":
		return sync.OnceValue(func() string {
			found, err := exec.LookPath("rg")
			if err != nil || !filepath.IsAbs(found) {
				return ""
			}
			return found
		})
	}
	return func() string { return given }
}

// narrow removes files that cannot match: those that do not contain a text that every match
// contains. Without ripgrep, or without such a text, it removes none.
func (s *searcher) narrow(ctx context.Context, q *query, batch []files.Entry) ([]files.Entry, error) {
	if len(batch) < fewFiles || len(q.literal.text) < minLiteral || s.rg() == "" {
		return batch, nil
	}
	dir := s.roots.Dir(q.place.Root)
	holding := map[string]bool{}
	for start := 0; start < len(batch); {
		end, size := start, 0
		for end < len(batch) && size < maxArgs {
			size += len(batch[end].Place.Path) + 3
			end++
		}
		if !s.holding(ctx, q, dir, batch[start:end], holding) {
			return batch, ctx.Err()
		}
		start = end
	}
	var kept []files.Entry
	for _, e := range batch {
		if holding[e.Place.Path] {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// holding asks ripgrep which of the files contain the literal. It returns false if ripgrep could not tell.
func (s *searcher) holding(ctx context.Context, q *query, dir string, batch []files.Entry, into map[string]bool) bool {
	ctx, cancel := context.WithTimeout(ctx, rgTimeout)
	defer cancel()
	args := []string{
		"--no-config", "--no-messages", "--color=never", "--files-with-matches", "--null",
		"--fixed-strings", "--text", "--encoding=none", "--no-ignore", "--hidden",
	}
	if q.literal.folded {
		args = append(args, "--ignore-case")
	} else {
		args = append(args, "--case-sensitive")
	}
	args = append(args, "-e", q.literal.text, "--")
	for _, e := range batch {
		args = append(args, "./"+e.Place.Path)
	}
	cmd := exec.CommandContext(ctx, s.rg(), args...)
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C.UTF-8"}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	// 0: some contain it, 1: none does, 2: some could not be read, so they cannot be ruled out.
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return false
	}
	for name := range bytes.SplitSeq(out, []byte{0}) {
		into[strings.TrimPrefix(string(name), "./")] = true
	}
	return true
}

// literal is a text that every match of a pattern contains.
type literal struct {
	text   string
	folded bool // in any case
}

// required returns the longest literal of a pattern, or an empty one if none is certain and plain ASCII.
func required(pattern string) literal {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return literal{}
	}
	return longest(tree.Simplify())
}

func longest(re *syntax.Regexp) literal {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r < 0x20 || r >= 0x7f {
				return literal{}
			}
		}
		return literal{string(re.Rune), re.Flags&syntax.FoldCase != 0}
	case syntax.OpCapture, syntax.OpPlus:
		return longest(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return longest(re.Sub[0])
		}
	case syntax.OpConcat:
		var best literal
		for _, sub := range re.Sub {
			if found := longest(sub); len(found.text) > len(best.text) {
				best = found
			}
		}
		return best
	}
	return literal{}
}
