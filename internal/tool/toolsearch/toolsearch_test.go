package toolsearch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/permit"
	"chorus/internal/tool"
	"chorus/internal/tool/toolsearch"
	"chorus/internal/tool/tooltest"
)

// remote is a tool as an MCP server would bring it.
type remote struct{ name, words, schema string }

func (r remote) Spec() tool.Spec {
	schema := r.schema
	if schema == "" {
		schema = `{"type":"object","properties":{"id":{"type":"integer","description":"which one"}},"required":["id"]}`
	}
	return tool.Spec{Name: r.name, Description: r.words, Schema: json.RawMessage(schema), Risk: tool.Medium}
}
func (remote) Access([]byte) []tool.Access { return nil }
func (r remote) Run(_ context.Context, args []byte) (tool.Result, error) {
	return tool.OK(r.name + string(args)), nil
}

func many(n int) []tool.Tool {
	var out []tool.Tool
	for i := range n {
		out = append(out, remote{name: fmt.Sprintf("mcp__big__tool_%03d", i), words: "Does a thing with widgets."})
	}
	return append(out,
		remote{name: "mcp__hub__create_issue", words: "Open a new issue in a repository."},
		remote{name: "mcp__hub__listPullRequests", words: "List the pull requests of a repository."},
		remote{name: "mcp__db__query", words: "Run SQL on the database."},
		remote{name: "read", words: "Read a file."})
}

func builtin(s tool.Spec) bool { return !strings.HasPrefix(s.Name, "mcp__") }

func listed(t rapid.TB, all []tool.Tool, keep func(tool.Spec) bool) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(all...)
	if err != nil {
		t.Fatal(err)
	}
	if set, err = toolsearch.Of(set, toolsearch.Limit, keep); err != nil {
		t.Fatal(err)
	}
	return set
}

func offered(t *testing.T, all []tool.Tool) *tool.Set {
	t.Helper()
	return listed(t, all, builtin)
}

func names(specs []tool.Spec) []string {
	var out []string
	for _, s := range specs {
		out = append(out, s.Name)
	}
	return out
}

func TestFewToolsStandAsTheyAre(t *testing.T) {
	t.Parallel()
	set := offered(t, many(36))
	if got := names(set.Specs()); len(got) != 40 || slices.Contains(got, "use_tool") {
		t.Errorf("%d tools: %v", len(got), got)
	}
}

func TestManyToolsAreShelved(t *testing.T) {
	t.Parallel()
	set := offered(t, many(500))
	if got := names(set.Specs()); !slices.Equal(got, []string{"find_tools", "read", "use_tool"}) {
		t.Fatalf("offered are %v", got)
	}
	if n := len(set.Unlisted()); n != 503 {
		t.Errorf("%d tools to search", n)
	}
	if words := set.Specs()[0].Description; !strings.Contains(words, "There are: big (500), db (1), hub (2).") {
		t.Errorf("the description does not say what is there: %s", words)
	}
	again := offered(t, many(500))
	for i, s := range again.Specs() {
		if s.Description != set.Specs()[i].Description || string(s.Schema) != string(set.Specs()[i].Schema) {
			t.Errorf("%s differs from set to set", s.Name)
		}
	}
}

func TestNothingToShelve(t *testing.T) {
	t.Parallel()
	set := listed(t, many(60), func(tool.Spec) bool { return true })
	if got := names(set.Specs()); slices.Contains(got, "find_tools") {
		t.Error("nothing to search, and still offered")
	}
}

// What is seldom needed is named where it is searched for, and listed where that is shorter.
func TestRareTools(t *testing.T) {
	t.Parallel()
	rarely := func(n int) (all []tool.Tool) {
		for i := range n {
			all = append(all, tool.New(tool.Func[struct{}]{Name: fmt.Sprintf("rare_%d", i), Description: strings.Repeat("words ", 40), Rare: true,
				Run: func(context.Context, struct{}) (tool.Result, error) { return tool.OK(""), nil }}))
		}
		return append(all, remote{name: "read", words: "Read a file."})
	}
	for n, want := range map[int]string{1: "rare_0 read", 9: "find_tools read use_tool"} {
		set, err := tool.NewSet(rarely(n)...)
		if err != nil {
			t.Fatal(err)
		}
		searched, err := toolsearch.Of(set, 0, func(s tool.Spec) bool { return !s.Rare })
		if err != nil {
			t.Fatal(err)
		}
		if words := searched.Specs()[0].Description; !strings.Contains(words, "rare_0") {
			t.Errorf("the names are not told: %s", words)
		}
		if got := strings.Join(names(toolsearch.Shorter(set, searched).Specs()), " "); got != want {
			t.Errorf("of %d: %s", n, got)
		}
	}
}

func find(t *testing.T, set *tool.Set, query string) string {
	t.Helper()
	args, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	found, args, err := set.Resolve("find_tools", args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := found.Run(t.Context(), args)
	if err != nil || res.Failed {
		t.Fatal(err, res.Blocks.Text())
	}
	return res.Blocks.Text()
}

func TestFind(t *testing.T) {
	t.Parallel()
	set := offered(t, many(100))
	for query, want := range map[string]string{
		"create issue":            "mcp__hub__create_issue",
		"issues":                  "mcp__hub__create_issue",
		"pull request":            "mcp__hub__listPullRequests",
		"please list my pulls":    "mcp__hub__listPullRequests",
		"sql":                     "mcp__db__query",
		"DATABASE":                "mcp__db__query",
		"mcp__big__tool_042":      "mcp__big__tool_042",
		"tool_042 mcp__big":       "mcp__big__tool_042",
		"repository issue widget": "mcp__hub__create_issue",
	} {
		text := find(t, set, query)
		if !strings.HasPrefix(text, want+"\n") {
			t.Errorf("%q finds %.200s", query, text)
		}
		if !strings.Contains(text, `"which one"`) || !strings.Contains(text, "use_tool") {
			t.Errorf("%q: no schema or no hint in %.300s", query, text)
		}
	}
	if text := find(t, set, "zzz"); !strings.HasPrefix(text, `No tool matches "zzz"`) {
		t.Errorf("nothing finds %s", text)
	}
	if text := find(t, set, ""); !strings.HasPrefix(text, "No tool") {
		t.Errorf("an empty query finds %.100s", text)
	}
}

func TestFindIsBounded(t *testing.T) {
	t.Parallel()
	var all []tool.Tool
	for i := range 100 {
		big := fmt.Sprintf(`{"type":"object","properties":{"a":{"description":%q}}}`, strings.Repeat("w", 7000+100*i))
		all = append(all, remote{name: fmt.Sprintf("mcp__s__%d", i), words: strings.Repeat("word ü", 3000), schema: big})
	}
	if text := find(t, offered(t, all), "word"); len(text) > 40<<10 || !strings.Contains(text, "and ") {
		t.Errorf("%d bytes", len(text))
	}
}

func TestUse(t *testing.T) {
	t.Parallel()
	set := offered(t, many(100))
	for _, c := range []struct{ name, args, tool, want string }{
		{"use_tool", `{"name":"mcp__db__query","arguments":{"id":"7"}}`, "mcp__db__query", `{"id":7}`},
		{"use_tool", `{"name":"mcp__db__query","arguments":"{\"id\":7}"}`, "mcp__db__query", `{"id":7}`},
		{"use_tool", `{"tool":"mcp__db__query","id":7}`, "mcp__db__query", `{"id":7}`},
		{"use_tool", `{"tool_name":" mcp__db__Query ","arguments":{"id":7}}`, "mcp__db__query", `{"id":7}`},
		{"mcp__db__query", `{"id":7}`, "mcp__db__query", `{"id":7}`},
		{"use_tool", `{"name":"read","arguments":{"id":7}}`, "read", `{"id":7}`},
	} {
		found, args, err := set.Resolve(c.name, []byte(c.args))
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		if got := found.Spec().Name; got != c.tool || string(args) != c.want || set.Validate(found, args) != nil {
			t.Errorf("%s is %s %s", c.args, got, args)
		}
	}
	for _, c := range []struct{ args, want string }{
		{`{}`, "'name' is missing"},
		{`{"arguments":{"id":1}}`, "'name' is missing"},
		{`{"name":"query","arguments":{}}`, "mcp__db__query"},
		{`{"name":"mcp__db__quer","arguments":{}}`, "Did you mean mcp__db__query?"},
		{`{"name":"tool","arguments":{}}`, "or another?"},
		{`{"name":"use_tool","arguments":{"name":"read"}}`, "cannot call use_tool"},
		{`[]`, "must be one JSON object"},
	} {
		var mistake tool.Mistake
		if _, _, err := set.Resolve("use_tool", []byte(c.args)); !errors.As(err, &mistake) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
	}
	found, args, err := set.Resolve("use_tool", []byte(`{"name":"mcp__db__query"}`))
	if err != nil || set.Validate(found, args) == nil {
		t.Errorf("the inner schema was not asked: %v", err)
	}
}

// The rules see the inner tool, whatever way it was called.
func TestRulesSeeTheInnerTool(t *testing.T) {
	t.Parallel()
	set := offered(t, many(100))
	locked, err := permit.Preset("locked")
	if err != nil {
		t.Fatal(err)
	}
	found, args, err := set.Resolve("use_tool", []byte(`{"arguments":{"id":1,"a":[2]},"name":"mcp__hub__create_issue"}`))
	if err != nil {
		t.Fatal(err)
	}
	j := locked.Judge([]permit.Request{{Tool: found.Spec().Name, Detail: permit.ToolDetail(args)}}, permit.JudgeOptions{})
	if j.Verdict != permit.Deny || j.Decision.Action != `tool:mcp__hub__create_issue:{"a":[2],"id":1}` {
		t.Errorf("%s of %s", j.Verdict, j.Decision.Action)
	}
	if string(args) != permit.ToolDetail(args) {
		t.Errorf("what runs is %s", args)
	}
}

func TestPossible(t *testing.T) {
	t.Parallel()
	all := many(3)
	set := offered(t, many(100))
	find := set.Tools()[0]
	for _, c := range []struct {
		preset string
		want   string
	}{
		{"locked", "read"},
		{"standard", "find_tools mcp__big__tool_000 mcp__big__tool_001 mcp__big__tool_002 mcp__db__query mcp__hub__create_issue mcp__hub__listPullRequests read"},
	} {
		profile, err := permit.Preset(c.preset)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		kept := toolsearch.Keep(append(all, find), profile.Possible)
		for _, one := range append(all, find) {
			if kept(one.Spec()) {
				got = append(got, one.Spec().Name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v", c.preset, got)
		}
	}
	for _, one := range set.Tools() {
		if _, forwards := one.(tool.Forwarder); forwards && !toolsearch.Keep([]tool.Tool{one}, func(string) bool { return false })(one.Spec()) {
			t.Error("use_tool was judged by its own name")
		}
	}
}

// Every tool is found by its own name, first.
func TestEverythingIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z]{1,6}(_[a-z0-9]{1,4})?`), 41, 45, strings.ToLower).Draw(t, "names")
		var all []tool.Tool
		for _, w := range words {
			all = append(all, remote{name: "mcp__s__" + w, words: rapid.SampledFrom(words).Draw(t, "words")})
		}
		set := listed(t, all, builtin)
		name := rapid.SampledFrom(set.Unlisted()).Draw(t, "tool").Name
		args, _ := json.Marshal(map[string]string{"query": name})
		one, args, err := set.Resolve("find_tools", args)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := one.Run(context.Background(), args); err != nil || !strings.HasPrefix(res.Blocks.Text(), name+"\n") {
			t.Fatalf("%s is not the first: %v", name, res.Blocks)
		}
	})
}

func TestKeepsTheRulesOfTools(t *testing.T) {
	t.Parallel()
	tooltest.Run(t, tooltest.Fixture{
		New: func(t *testing.T) (*tool.Set, []string) {
			set := offered(t, many(50))
			return set.Filter(func(s tool.Spec) bool { return s.Name == "find_tools" }), nil
		},
		Calls: map[string][]string{"find_tools": {`{"query":"issue"}`, `{"query":""}`}},
	})
}
