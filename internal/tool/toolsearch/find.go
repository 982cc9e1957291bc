package toolsearch

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"chorus/internal/text"
	"chorus/internal/tool"
)

//go:embed find_tools.md
var findWords string

const (
	shownWhole   = 5        // with description and schema
	shownNames   = 15       // further ones, by name only
	largestFind  = 24 << 10 // a search must cost less than the list it replaces
	longSchema   = 8 << 10
	longWords    = 1000
	longestQuery = 500
)

type findIn struct {
	Query string `json:"query" jsonschema:"a few words, or a part of a name"`
}

// newFind returns find_tools over these tools. It is information
// about the agent itself and is judged as that.
func newFind(specs []tool.Spec) tool.Tool {
	index := sync.OnceValue(func() *index { return newIndex(specs) }) // most runs never search
	return tool.New(tool.Func[findIn]{
		Name:        "find_tools",
		Description: strings.TrimSpace(findWords) + " There are: " + groups(specs) + ".",
		ReadOnly:    true,
		Access:      func(findIn) []tool.Access { return []tool.Access{{Tool: "info", Detail: "tools"}} },
		JudgedAs:    []string{"info"},
		Label:       func(in findIn) string { return "find tools: " + text.Clip(in.Query, 60) },
		Run: func(_ context.Context, in findIn) (tool.Result, error) {
			return tool.From("descriptions of tools", index().answer(text.Clip(in.Query, longestQuery))), nil
		},
	})
}

// groups summarises the tools in a line: the rare tools by name, so that a model that does
// not search can call them, and the others by server or by group.
func groups(specs []tool.Spec) string {
	count := map[string]int{}
	var out []string
	for _, s := range specs {
		if s.Rare {
			out = append(out, s.Name)
			continue
		}
		group := cmp.Or(s.Group, "others")
		if rest, ok := strings.CutPrefix(s.Name, "mcp__"); ok {
			group, _, _ = strings.Cut(rest, "__")
		}
		count[group]++
	}
	slices.Sort(out)
	for _, group := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%s (%d)", group, count[group]))
	}
	if len(out) > 30 {
		out = append(out[:30], "and more")
	}
	return strings.Join(out, ", ")
}

// indexed is a tool with the words it is found by.
type indexed struct {
	spec  tool.Spec
	name  map[string]bool
	words map[string]bool
}

type index struct {
	tools []indexed
	holds map[string]int // number of tools that contain each word
}

func newIndex(specs []tool.Spec) *index {
	x := &index{holds: map[string]int{}}
	for _, s := range specs {
		one := indexed{spec: s, name: wordSet(s.Name), words: wordSet(s.Group + " " + s.Description)}
		for w := range one.name {
			x.holds[w]++
		}
		for w := range one.words {
			if !one.name[w] {
				x.holds[w]++
			}
		}
		x.tools = append(x.tools, one)
	}
	return x
}

// search returns the tools that match some of the query, best first. A rare word counts more
// than one that many tools contain, and the name counts more than the rest.
func (x *index) search(query string) []tool.Spec {
	type hit struct {
		spec  tool.Spec
		score float64
	}
	asked := slices.Sorted(maps.Keys(wordSet(query)))
	whole := strings.ToLower(strings.TrimSpace(query))
	var hits []hit
	for _, one := range x.tools {
		score := 0.0
		if strings.ToLower(one.spec.Name) == whole {
			score += 1000
		}
		for _, w := range asked {
			rare := 1 + 4/float64(max(1, x.holds[w]))
			switch {
			case one.name[w]:
				score += 5 * rare
			case one.words[w]:
				score += 2 * rare
			case len(w) >= 3 && hasPart(one.name, w):
				score += 3
			case len(w) >= 4 && hasPart(one.words, w):
				score++
			}
		}
		if score > 0 {
			hits = append(hits, hit{one.spec, score})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.spec.Name, b.spec.Name))
	})
	out := make([]tool.Spec, len(hits))
	for i, h := range hits {
		out[i] = h.spec
	}
	return out
}

// answer returns what the model reads.
func (x *index) answer(query string) string {
	found := x.search(query)
	if len(found) == 0 {
		var names []string
		for _, one := range x.tools[:min(shownNames, len(x.tools))] {
			names = append(names, one.spec.Name)
		}
		return fmt.Sprintf("No tool matches %q. Try other words. Some of the %d available: %s", query, len(x.tools), strings.Join(names, ", "))
	}
	var out strings.Builder
	shown := 0
	for _, s := range found[:min(shownWhole, len(found))] {
		text := describe(s)
		if shown > 0 && out.Len()+len(text) > largestFind {
			break
		}
		out.WriteString(text)
		shown++
	}
	if rest := found[shown:]; len(rest) > 0 {
		var names []string
		for _, s := range rest[:min(shownNames, len(rest))] {
			names = append(names, s.Name)
		}
		fmt.Fprintf(&out, "Less likely: %s", strings.Join(names, ", "))
		if more := len(rest) - len(names); more > 0 {
			fmt.Fprintf(&out, " and %d more", more)
		}
		out.WriteString("\n\n")
	}
	out.WriteString(`Call one with use_tool: {"name": "…", "arguments": {…}}`)
	return out.String()
}

func describe(s tool.Spec) string {
	schema := string(s.Schema)
	if len(schema) > longSchema {
		schema = "too long to show; a call with wrong arguments is answered with the list of them"
	}
	return fmt.Sprintf("%s\n%s\nParameters: %s\n\n", s.Name, text.Clip(s.Description, longWords), schema)
}

func hasPart(words map[string]bool, part string) bool {
	for w := range words {
		if strings.Contains(w, part) || len(w) >= 4 && strings.Contains(part, w) {
			return true
		}
	}
	return false
}

// wordSet splits text into lower-case words: at everything that is not a
// letter or digit, and before a capital letter.
func wordSet(text string) map[string]bool {
	out := map[string]bool{}
	var word []rune
	end := func() {
		if len(word) > 0 {
			out[strings.ToLower(string(word))] = true
		}
		word = word[:0]
	}
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			continue
		case unicode.IsUpper(r) && len(word) > 0 && unicode.IsLower(word[len(word)-1]):
			end()
		}
		word = append(word, r)
	}
	end()
	return out
}
