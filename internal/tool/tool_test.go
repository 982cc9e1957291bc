package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"chorus/internal/tool"
)

type demoIn struct {
	Path   string   `json:"path" jsonschema:"where it is"`
	Offset int      `json:"offset,omitempty" jsonschema:"first line"`
	All    bool     `json:"all,omitempty"`
	Ratio  float64  `json:"ratio,omitempty"`
	Globs  []string `json:"globs,omitempty"`
	Mode   string   `json:"mode,omitempty"`
}

func demo(name string, aliases ...tool.Alias) tool.Tool {
	return tool.New(tool.Func[demoIn]{
		Name: name, Description: "\nDoes it.\n", ReadOnly: true, Aliases: aliases,
		Enum:   map[string][]string{"mode": {"a", "b"}},
		Access: func(in demoIn) []tool.Access { return []tool.Access{{Tool: name, Detail: in.Path}} },
		Label:  func(in demoIn) string { return name + " " + in.Path },
		Run: func(_ context.Context, in demoIn) (tool.Result, error) {
			text, _ := json.Marshal(in)
			return tool.OK(string(text)), nil
		},
	})
}

func newSet(t *testing.T, tools ...tool.Tool) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestSchemaIsPlainAndStable(t *testing.T) {
	t.Parallel()
	const want = `{"type":"object","properties":{"path":{"type":"string","description":"where it is"},` +
		`"offset":{"type":"integer","description":"first line"},"all":{"type":"boolean"},"ratio":{"type":"number"},` +
		`"globs":{"type":"array","items":{"type":"string"}},"mode":{"type":"string","enum":["a","b"]}},` +
		`"required":["path"],"additionalProperties":false}`
	for range 5 {
		spec := demo("demo").Spec()
		if string(spec.Schema) != want {
			t.Fatalf("schema\n got %s\nwant %s", spec.Schema, want)
		}
		if spec.Description != "Does it." || spec.Risk != tool.Low || !spec.ReadOnly {
			t.Fatalf("spec %+v", spec)
		}
	}
}

func TestResolveMendsAndValidateExplains(t *testing.T) {
	t.Parallel()
	set := newSet(t, demo("demo"))
	const params = "\nParameters:\n- 'path' (string, required): where it is\n- 'offset' (integer, optional): first line"
	tests := []struct{ name, args, want, wrong string }{
		{"as it is", `{"path":"x", "offset":3}`, `{"path":"x", "offset":3}`, ""},
		{"number as string", `{"path":"x","offset":"5"}`, `{"offset":5,"path":"x"}`, ""},
		{"whole float", `{"path":"x","offset":5.0}`, `{"offset":5,"path":"x"}`, ""},
		{"float as string", `{"path":"x","ratio":"0.5"}`, `{"path":"x","ratio":0.5}`, ""},
		{"bool as string", `{"path":"x","all":"True"}`, `{"all":true,"path":"x"}`, ""},
		{"string from number", `{"path":12}`, `{"path":"12"}`, ""},
		{"one for a list", `{"path":"x","globs":"*.go"}`, `{"globs":["*.go"],"path":"x"}`, ""},
		{"a list in a string", `{"path":"x","globs":"[\"a\",\"b\"]"}`, `{"globs":["a","b"],"path":"x"}`, ""},
		{"null for optional", `{"path":"x","offset":null}`, `{"path":"x"}`, ""},
		{"another spelling", `{"Path":"x"}`, `{"path":"x"}`, ""},
		{"object in a string", `"{\"path\":\"x\"}"`, `{"path":"x"}`, ""},
		{"missing", `{}`, `{}`, "Invalid arguments for demo: 'path' is missing." + params},
		{"nothing", ``, `{}`, "'path' is missing"},
		{"wrong type", `{"path":["x"]}`, `{"path":["x"]}`, "'path' must be a string, not array." + params},
		{"not whole", `{"path":"x","offset":1.5}`, `{"path":"x","offset":1.5}`, "'offset' must be an integer, not number"},
		{"unknown", `{"path":"x","colour":1}`, `{"path":"x","colour":1}`, "there is no parameter 'colour'"},
		{"deeper", `{"path":"x","globs":[1]}`, `{"path":"x","globs":[1]}`, "globs"},
		{"not in the list", `{"path":"x","mode":"c"}`, `{"path":"x","mode":"c"}`, "mode"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, args, err := set.Resolve("demo", []byte(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			if string(args) != tt.want {
				t.Errorf("arguments %s, want %s", args, tt.want)
			}
			err = set.Validate(got, args)
			if (err != nil) != (tt.wrong != "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("validate: %v, want %q", err, tt.wrong)
			}
			res, runErr := got.Run(t.Context(), args)
			if runErr != nil || res.Failed != (tt.wrong != "") {
				t.Errorf("run: %+v, %v", res, runErr)
			}
		})
	}
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	t.Parallel()
	set := newSet(t, demo("demo", tool.Also("other")))
	for _, args := range []string{`[]`, `3`, `"hello"`, `{"path":`, `true`} {
		for _, name := range []string{"demo", "other"} {
			_, _, err := set.Resolve(name, []byte(args))
			if err == nil || !strings.Contains(err.Error(), "one JSON object") {
				t.Errorf("%s %s: %v", name, args, err)
			}
			if m := tool.Mistake(""); !errors.As(err, &m) {
				t.Errorf("%s %s: not a mistake: %T", name, args, err)
			}
		}
	}
}

func TestNamesAndAliases(t *testing.T) {
	t.Parallel()
	set := newSet(t,
		demo("write"),
		demo("read", tool.Also("read_file"), tool.Renamed("ReadFile", map[string]string{"startLine": "offset", "label": ""})),
	)
	tests := []struct{ name, args, tool, want, err string }{
		{"read", `{"path":"a"}`, "read", `{"path":"a"}`, ""},
		{"READ", `{"path":"a"}`, "read", `{"path":"a"}`, ""},
		{"read_file", `{"path":"a"}`, "read", `{"path":"a"}`, ""},
		{"ReadFile", `{"path":"a","startLine":4,"label":"x"}`, "read", `{"offset":4,"path":"a"}`, ""},
		{"readfile", `{"path":"a","startLine":4}`, "read", `{"offset":4,"path":"a"}`, ""},
		{"ReadFile", `{"path":"a","startLine":4,"offset":5}`, "", "", "both 'startLine' and 'offset' were given"},
		{"nope", `{}`, "", "", "Unknown tool: nope. There are: read, write"},
		{"wirte", `{}`, "", "", "Unknown tool: wirte. Did you mean write?"},
	}
	for _, tt := range tests {
		got, args, err := set.Resolve(tt.name, []byte(tt.args))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || got.Spec().Name != tt.tool || string(args) != tt.want {
			t.Errorf("%s: %v %s %v", tt.name, got, args, err)
		}
	}
	if got := set.Aliases(); len(got) != 2 || got["ReadFile"] != "read" {
		t.Errorf("aliases %v", got)
	}
	if got := set.Label("ReadFile", []byte(`{"path":"a"}`)); got != "read a" {
		t.Errorf("label %q", got)
	}
	if got := set.Label("nope", nil); got != "nope" {
		t.Errorf("label %q", got)
	}
	if specs := set.Specs(); specs[0].Name != "read" || specs[1].Name != "write" {
		t.Errorf("specs %v", specs)
	}
	few := set.Filter(func(s tool.Spec) bool { return s.Name == "write" })
	if _, _, err := few.Resolve("read_file", nil); err == nil || len(few.Tools()) != 1 {
		t.Errorf("the filtered set still reads: %v", err)
	}
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	type bad struct {
		F func() `json:"f"`
	}
	tests := map[string][]tool.Tool{
		"twice":           {demo("a"), demo("a")},
		"alias is a name": {demo("a"), demo("b", tool.Also("a"))},
		"alias twice":     {demo("a", tool.Also("x")), demo("b", tool.Also("x"))},
		"no name":         {demo("")},
		"no schema":       {tool.New(tool.Func[bad]{Name: "f"})},
	}
	for name, tools := range tests {
		if _, err := tool.NewSet(tools...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCancelledIsOurs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := demo("a").Run(ctx, []byte(`{"path":"x"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	var numbered strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&numbered, "line %d\n", i+1)
	}
	keep := func(_ context.Context, call, _ string) (string, error) { return "@outputs/" + call + ".txt", nil }
	broken := func(context.Context, string, string) (string, error) { return "", errors.New("disk full") }
	tests := []struct {
		name         string
		text         string
		end          tool.End
		keep         tool.Keep
		starts, end2 string
	}{
		{"short", "a\nb\n", tool.Tail, keep, "a\n", "b\n"},
		{"empty", "", tool.Head, keep, "", ""},
		{"head", numbered.String(), tool.Head, keep, "line 1\n", "line 2000\n[Showing lines 1-2000 of 3000. Full output: @outputs/c1.txt]"},
		{"tail", numbered.String(), tool.Tail, keep, "[Showing lines 1001-3000 of 3000. Full output: @outputs/c1.txt]\nline 1001\n", "line 3000\n"},
		{"no keeper", numbered.String(), tool.Tail, nil, "[Showing lines 1001-3000 of 3000.]\n", "line 3000\n"},
		{"keeper fails", numbered.String(), tool.Tail, broken, "[Showing lines 1001-3000 of 3000. The full output could not be kept.]\n", "line 3000\n"},
		{"one huge line, tail", strings.Repeat("ä", 100<<10), tool.Tail, keep, "[Showing the end (50688 bytes) of line 1 of 1", "ä"},
		{"one huge line, head", strings.Repeat("ä", 100<<10), tool.Head, keep, "ä", "of line 1 of 1, which has more. Full output: @outputs/c1.txt]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := tool.WithCall(t.Context(), tool.Call{ID: "c1"})
			got := tool.Clip(ctx, tt.text, tt.end, tt.keep)
			if !strings.HasPrefix(got, tt.starts) || !strings.HasSuffix(got, tt.end2) {
				t.Errorf("got %.120q … %q", got, got[max(0, len(got)-120):])
			}
		})
	}
}

func TestClipNeverPassesItsLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "\n", "äö", "\xff", "word ", strings.Repeat("x", 3000), strings.Repeat("\n", 700), "😀"})
		text := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "text"), "")
		end := rapid.SampledFrom([]tool.End{tool.Head, tool.Tail}).Draw(t, "end")
		got := tool.Clip(context.Background(), text, end, nil)
		if len(got) > tool.MaxBytes || strings.Count(got, "\n") > tool.MaxLines+1 || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, %d newlines, valid %v", len(got), strings.Count(got, "\n"), utf8.ValidString(got))
		}
	})
}

func BenchmarkNewSet(b *testing.B) {
	for b.Loop() {
		if _, err := tool.NewSet(demo("a"), demo("b"), demo("c"), demo("d"), demo("e"), demo("f"), demo("g"), demo("h"), demo("i"), demo("j")); err != nil {
			b.Fatal(err)
		}
	}
}

func TestToolsAlikeShareTheirSchema(t *testing.T) {
	t.Parallel()
	type in struct {
		Path string `json:"path"`
	}
	made := func(name, about string, enum ...string) tool.Tool {
		f := tool.Func[in]{Name: name, Description: about, Run: func(context.Context, in) (tool.Result, error) { return tool.OK(about), nil }}
		if enum != nil {
			f.Enum = map[string][]string{"path": enum}
		}
		return tool.New(f)
	}
	first := made("read", "reads")
	for _, c := range []struct {
		name   string
		other  tool.Tool
		shared bool
	}{
		{"alike", made("read", "reads"), true},
		{"another name", made("write", "reads"), false},
		{"another description", made("read", "really reads"), false},
		{"other values", made("read", "reads", "a", "b"), false},
	} {
		tool.Share([]tool.Tool{c.other}, []tool.Tool{first})
		a, b := first.Spec().Schema, c.other.Spec().Schema
		if same := &a[0] == &b[0]; same != c.shared {
			t.Errorf("%s: shared %v, want %v", c.name, same, c.shared)
		}
	}
}
