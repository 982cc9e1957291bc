package files

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreNames are the files whose rules apply, the stronger last.
var ignoreNames = []string{".gitignore", ".ignore"}

// ignores are the rules that apply in a directory: its own and those above it.
type ignores struct {
	above *ignores
	dir   string // the directory of the rules, relative to the root; "." at the top
	rules []rule
}

type rule struct {
	pattern  string
	negated  bool // keeps what an earlier rule ignores
	dirOnly  bool
	anchored bool // matched against the path below dir, not only against the name
	literal  bool
}

// parseIgnore parses rules as git does: the last one that matches decides.
func parseIgnore(text string) []rule {
	var rules []rule
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var r rule
		if line[0] == '!' {
			r.negated = true
			line = line[1:]
		}
		if strings.HasSuffix(line, "/") {
			r.dirOnly = true
			line = strings.TrimSuffix(line, "/")
		}
		r.anchored = strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if line == "" {
			continue
		}
		r.literal = !strings.ContainsAny(line, `*?[\`)
		if !r.literal {
			// Braces are literal here, and dir/** matches what is in dir, not dir itself.
			line = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(line)
			if strings.HasSuffix(line, "/**") {
				line += "/*"
			}
			if !doublestar.ValidatePattern(line) {
				continue
			}
		}
		r.pattern = line
		rules = append(rules, r)
	}
	return rules
}

func (r *rule) matches(rel string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if !r.anchored {
		rel = path.Base(rel)
	}
	if r.literal {
		return r.pattern == rel
	}
	return doublestar.MatchUnvalidated(r.pattern, rel)
}

// ignored reports whether to leave out a path (relative to the root). It is
// never called for anything below an ignored directory.
func (g *ignores) ignored(name string, isDir bool) bool {
	for level := g; level != nil; level = level.above {
		rel := name
		if level.dir != "." {
			rel = strings.TrimPrefix(name, level.dir+"/")
		}
		for i := len(level.rules) - 1; i >= 0; i-- {
			if level.rules[i].matches(rel, isDir) {
				return !level.rules[i].negated
			}
		}
	}
	return false
}

// Glob is a pattern for paths below a directory. A pattern without a slash matches the name at any depth.
type Glob struct {
	pattern string
	name    bool
}

// NewGlob parses a pattern; ok is false if it is invalid.
func NewGlob(pattern string) (g Glob, ok bool) {
	pattern = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(pattern), "./"), "/")
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	return Glob{pattern, !strings.Contains(pattern, "/")}, pattern != "" && doublestar.ValidatePattern(pattern) && ways(pattern) <= maxWays
}

// maxWays limits how many patterns a pattern with braces may stand for: each may
// be tried for every path, and nothing interrupts that.
const maxWays = 1000

// ways returns how many patterns a valid pattern with braces stands
// for at most. It stops counting after maxWays.
func ways(pattern string) int {
	product := 1
	var open []int // number of alternatives in each open brace
	for i := 0; i < len(pattern) && product <= maxWays; i++ {
		switch {
		case pattern[i] == '\\':
			i++
		case pattern[i] == '{':
			open = append(open, 1)
		case pattern[i] == ',' && len(open) > 0:
			open[len(open)-1]++
		case pattern[i] == '}' && len(open) > 0:
			product *= open[len(open)-1]
			open = open[:len(open)-1]
		}
	}
	return product
}

// Match reports whether the pattern matches a path with forward slashes.
func (g Glob) Match(rel string) bool {
	if g.name {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(g.pattern, rel)
}

// Covers reports whether the pattern matches the path or any directory above it, as an exclusion does.
func (g Glob) Covers(rel string) bool {
	for ; rel != "." && rel != "/"; rel = path.Dir(rel) {
		if g.Match(rel) {
			return true
		}
	}
	return false
}
