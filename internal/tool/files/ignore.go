package files

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreNames are the files whose rules are honoured, the stronger last.
var ignoreNames = []string{".gitignore", ".ignore"}

// ignores are the rules in force in a directory: its own and those above it.
type ignores struct {
	above *ignores
	dir   string // the directory the rules stand in, relative to the root; "." at the top
	rules []rule
}

type rule struct {
	pattern  string
	negated  bool // keeps what an earlier rule ignores
	dirOnly  bool
	anchored bool // against the path below dir, not against the name alone
	literal  bool
}

// parseIgnore reads rules as git does: the last one that matches decides.
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
			// Braces mean themselves here, and dir/** is what is in dir, not dir.
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

// ignored says whether a path (relative to the root) is to be left out. Whatever
// is below an ignored directory is never asked for.
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

// Glob is a pattern that paths below a directory are held against: one without a
// slash is held against the name at any depth.
type Glob struct {
	pattern string
	name    bool
}

// NewGlob reads a pattern; ok is false when it is none.
func NewGlob(pattern string) (g Glob, ok bool) {
	pattern = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(pattern), "./"), "/")
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	return Glob{pattern, !strings.Contains(pattern, "/")}, pattern != "" && doublestar.ValidatePattern(pattern) && ways(pattern) <= maxWays
}

// maxWays is how many patterns one with braces may stand for: each may be tried for every path, and nothing ends that.
const maxWays = 1000

// ways is how many patterns a valid one with braces stands for, at most; what is more than maxWays is not counted.
func ways(pattern string) int {
	product := 1
	var open []int // alternatives of the braces that are open
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

// Match holds the pattern against a path with forward slashes.
func (g Glob) Match(rel string) bool {
	if g.name {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(g.pattern, rel)
}

// Covers is Match for the path or any directory above it: what an exclusion means.
func (g Glob) Covers(rel string) bool {
	for ; rel != "." && rel != "/"; rel = path.Dir(rel) {
		if g.Match(rel) {
			return true
		}
	}
	return false
}
